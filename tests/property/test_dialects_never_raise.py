"""No content makes a dialect fail or lose a span."""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._values import parsed, salvage
from pandaeval_otel.model import Kind, Span
from pandaeval_otel.model.raw import RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.normal.spans import dialects, normalize
from support.examples import examples


def _strings_of(module: Any) -> list[str]:
    values = [value for name, value in vars(module).items() if name.isupper()]
    groups = [value if isinstance(value, tuple) else (value,) for value in values]
    return sorted({item for group in groups for item in group if isinstance(item, str)})


VENDOR_KEYS = [
    "openinference.span.kind",
    "input.value",
    "output.value",
    "llm.input_messages.0.message.content",
    "llm.output_messages.39.message.tool_calls.0.tool_call.function.arguments",
    "llm.tools.0.tool.json_schema",
    "llm.token_count.prompt",
    "metadata",
    "traceloop.span.kind",
    "traceloop.entity.input",
    "traceloop.association.properties.session_id",
    "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content",
    "gen_ai.completion.0.tool_calls.0.arguments",
    "llm.request.functions.0.parameters",
    "pydantic_ai.all_messages",
    "all_messages_events",
    "pydantic_ai.new_message_index",
    "final_result",
    "tool_arguments",
    "tool_response",
    "events",
    "model_request_parameters",
    "ai.operationId",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.prompt.tools",
    "ai.response.toolCalls",
    "ai.toolCall.args",
    "langsmith.span.kind",
    "langsmith.metadata.thread_id",
    "langfuse.observation.type",
    "langfuse.observation.input",
    "langfuse.observation.usage_details",
    "mlflow.spanType",
    "mlflow.spanInputs",
    "mlflow.chat.tools",
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
    "gcp.vertex.agent.tool_call_args",
    "crewai.crew.inputs",
    "crewai.task.output",
    "haystack.agent.input",
    "haystack.agent.step.tool.output",
    "haystack.tool.error",
    "user_prompt",
    "input_tokens",
    "message",
    "content",
    "role",
    "id",
    "tool.result",
    "exception.message",
    "pandaeval.goal",
]
DIALECT_MODULES = [sys.modules[type(dialect).__module__] for dialect in dialects()]
KEYS = sorted(
    {*_strings_of(semconv), *VENDOR_KEYS, *(key for module in DIALECT_MODULES for key in _strings_of(module))}
)
NAMES = [
    "chat m",
    "execute_tool f",
    "execute_tool (merged)",
    "invoke_agent",
    "ai.toolCall",
    "haystack.agent.run",
    "x",
    "",
]
SCOPES = [
    *("", "gcp.vertex.agent", "strands.telemetry.tracer", "pydantic-ai", "ai", "langsmith", "pandaeval.evaluation"),
    *("openinference.instrumentation.langchain", "opentelemetry.instrumentation.langchain", "langfuse-sdk"),
    *("openinference.instrumentation.openai_agents", "openlit.instrumentation.openai", "traceloop.tracer"),
]
EVENTS = [
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    semconv.TOOL_EVENT,
    semconv.CHOICE_EVENT,
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
    "gen_ai.client.inference.operation.details",
    semconv.EXCEPTION,
    "tool.output",
    "",
]

# Member names of messages, parts, calls and bodies in all dialects: they make random dictionaries look real.
MEMBERS = """
    role content parts type text tool_calls function name arguments id tool_call_id kwargs data lc messages message
    choices candidates generations contents toolUse toolResult toolUseId uri input output result response function_call
    function_response image source image_url url finish_reason thought reasoning thinking reasoningContent summary
    modality parameters inputSchema annotations readOnlyHint event.name index value kind json refusal
"""
WORDS = """
    user assistant tool model human ai text tool_call tool_use tool_result image_url blob reasoning constructor chat
    function_call_output execute_tool AGENT "TOOL" <elided> {} [] unknown null \\ " [{ [{" {'a':1} ((((( NaN
    LLM CHAIN TOOL RETRIEVER workflow task llm chain retriever generation "CHAT_MODEL" final_answer finish
    Message(role='user',content='x') status='error' [[ ## <Foo x='1'>
    data:image/png;base64,AAAA ééééééééééééééééééééééééééééééééééééééé
"""
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.sampled_from(WORDS.split())
    | st.text(max_size=20)
    | st.binary(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(MEMBERS.split()) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=20,
)


def _encoded(value: Any) -> str:
    return json.dumps(value, default=str)


# The same values as text: JSON, JSON encoded twice, repr, and cut JSON.
TEXTS = VALUES.map(_encoded)
ENCODED = (
    TEXTS
    | TEXTS.map(json.dumps)
    | VALUES.map(repr)
    | st.builds(lambda text, end: text[:end], TEXTS, st.integers(0, 200))
)
ANYTHING = VALUES | ENCODED
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), ANYTHING, max_size=12)
LOGS = st.builds(
    RawLog,
    trace_id=st.just("t" * 32),
    span_id=st.just("s" * 16),
    event_name=st.sampled_from(EVENTS),
    time_ns=st.integers(0, 3),
    body=ANYTHING,
    attributes=ATTRIBUTES,
)
SPANS = st.builds(
    RawSpan,
    trace_id=st.just("t" * 32),
    span_id=st.just("s" * 16),
    name=st.sampled_from(NAMES) | st.text(max_size=6),
    status_code=st.integers(0, 3),
    status_message=st.text(max_size=4),
    attributes=ATTRIBUTES,
    events=st.lists(
        st.builds(RawEvent, name=st.sampled_from(EVENTS), time_ns=st.just(1), attributes=ATTRIBUTES), max_size=3
    ),
    links=st.just((RawLink("a" * 32, "b" * 16),)),
    resource=st.builds(Resource, attributes=ATTRIBUTES),
    scope=st.builds(Scope, name=st.sampled_from(SCOPES)),
    flags=st.integers(0, 0x3FF),
)


@settings(
    max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(span=SPANS, logs=st.lists(LOGS, max_size=3))
def test_any_raw_span_is_normalized_and_no_dialect_fails(span: RawSpan, logs: list[RawLog]) -> None:
    found = normalize(span, logs)
    assert isinstance(found, Span)
    assert [note for note in found.notes if note.endswith("failed")] == []
    assert isinstance(found.kind, Kind)
    assert found.dialects
    assert normalize(span, logs) == found or "nan" in repr(found)
    for messages in (found.input, found.output):
        for message in messages or ():
            assert message.role in ("system", "user", "assistant", "tool")
            assert isinstance(message.text, str)
    assert all(isinstance(rank, int) and name for rank, name in found.session_ids)
    names = (
        found.tool_name,
        found.agent_name,
        found.user_id,
        found.response_id,
        found.tool_call_id,
        found.request_model,
    )
    assert all(isinstance(name, str) for name in names)


@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(max_size=60) | ENCODED | st.text(alphabet="[]{}()\",:\\' u0d8fa1", max_size=60))
def test_any_text_is_parsed_to_valid_json_data_or_none(text: str) -> None:
    for found in (parsed(text), salvage(text)):
        assert found is None or isinstance(found, (str, dict, list))
        json.dumps(found, ensure_ascii=False).encode()


def _number(digits: str) -> int | float:
    """Parse numbers as orjson does; beyond 64 bits: float."""
    return int(digits) if -(2**63) <= int(digits) < 2**64 else float(digits)


@settings(max_examples=examples(50), deadline=None)
@given(value=VALUES, end=st.floats(0, 1))
def test_data_salvaged_from_cut_json_equals_the_beginning_of_the_whole(value: Any, end: float) -> None:
    whole = json.dumps([value, value], default=str, allow_nan=True)
    saved = salvage(whole[: int(len(whole) * end)])
    if isinstance(saved, list) and len(saved) == 2:
        assert saved[0] == json.loads(whole, parse_constant=str, parse_int=_number)[0]
