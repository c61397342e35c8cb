"""Langfuse's own SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.langfuse import DIALECT
from pandaeval_otel.model import Captured, Kind, Message, Text, ToolDefinition, Usage
from pandaeval_otel.model.raw import RawSpan, Scope
from pandaeval_otel.normal.spans import normalize

PREFIX = "langfuse.observation."
TYPE, INPUT, OUTPUT = f"{PREFIX}type", f"{PREFIX}input", f"{PREFIX}output"
ASK = Message("user", (Text("Weather in Oslo?"),))
ANSWER = Message("assistant", (Text("4 degrees."),))


def span(attributes: dict[str, Any], **fields: Any) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes, scope=Scope("langfuse-sdk"), **fields)


def read(attributes: dict[str, Any], **fields: Any) -> Reading:
    found = DIALECT.read(span(attributes, **fields), ())
    assert found is not None
    return found


def test_a_generation_with_the_tools_among_its_messages() -> None:
    definition = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    given = [{"role": "user", "content": "Weather in Oslo?"}, {"role": "tool", "content": definition}]
    found = read(
        {
            TYPE: "generation",
            INPUT: json.dumps(given),
            OUTPUT: '{"role": "assistant", "content": "4 degrees."}',
            f"{PREFIX}model.name": "gpt-x",
            f"{PREFIX}usage_details": '{"input": 40, "output": 5, "total": 107, "input_cache_read": 50,'
            ' "output_reasoning": 12}',
        }
    )
    assert (found.kind, found.input, found.output) == (Kind.LLM, (ASK,), (ANSWER,))
    assert found.tools == (ToolDefinition("get_weather", "", {"type": "object"}),)
    assert found.request_model == "gpt-x"
    assert found.usage == Usage(90, 17, cache_read=50, reasoning=12)


def test_a_generation_with_the_tools_beside_its_messages() -> None:
    given = {"messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": [{"name": "f"}]}
    found = read({TYPE: "generation", INPUT: json.dumps(given), f"{PREFIX}usage_details": '{"prompt_tokens": 3}'})
    assert (found.input, found.tools, found.usage) == ((ASK,), (ToolDefinition("f"),), Usage(3, 0))


@pytest.mark.parametrize(
    ("stated", "extra", "parent", "kind"),
    [
        ("agent", {}, "p", Kind.AGENT),
        ("tool", {}, "p", Kind.TOOL),
        ("retriever", {}, "p", Kind.RETRIEVAL),
        ("embedding", {}, "p", Kind.EMBEDDING),
        ("guardrail", {}, "p", Kind.GUARDRAIL),
        ("evaluator", {}, "p", Kind.EVALUATION),
        ("span", {}, "p", Kind.STEP),
        ("span", {}, "", Kind.WORKFLOW),
        ("chain", {"langfuse.internal.is_app_root": True}, "p", Kind.WORKFLOW),
        ("chain", {f"{PREFIX}metadata.lc_agent_name": '"desk"'}, "p", Kind.AGENT),
    ],
)
def test_observation_types_set_kinds(stated: str, extra: dict[str, Any], parent: str, kind: Kind) -> None:
    assert read({TYPE: stated, **extra}, parent_id=parent, name="desk").kind is kind


def test_the_kind_of_an_untyped_span_is_read_from_its_name() -> None:
    assert normalize(span({INPUT: "Weather in Oslo?"}, name="chat gpt-x")).kind is Kind.LLM


def test_a_tool() -> None:
    message = {"content": '{"temp_c": 4}', "type": "tool", "tool_call_id": "c9", "status": "success"}
    found = read({TYPE: "tool", INPUT: '{"city": "Oslo"}', OUTPUT: json.dumps(message)}, name="get_weather")
    assert (found.tool_name, found.tool_call_id) == ("get_weather", "c9")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_trace_input_and_output_are_used_if_the_root_has_none() -> None:
    root = {"langfuse.trace.input": '"Weather in Oslo?"', "langfuse.trace.output": '{"answer": "4 degrees."}'}
    found = read({TYPE: "span", **root})
    assert (found.input, found.output) == ((ASK,), (ANSWER,))


def test_a_decorated_functions_structured_answer_is_kept_as_it_is() -> None:
    found = read({TYPE: "span", INPUT: '{"args": ["oslo"], "kwargs": {}}', OUTPUT: '{"temp": {"c": 4}, "sky": "rain"}'})
    assert found.input == (Message("user", (Text("oslo"),)),)
    assert found.output == (Message("assistant", (Text('{"temp": {"c": 4}, "sky": "rain"}'),)),)


def test_errors_sessions_and_users() -> None:
    metadata = {f"{PREFIX}metadata.thread_id": '"s-7"', f"{PREFIX}metadata.user_id": '"u-1"'}
    found = read({TYPE: "tool", f"{PREFIX}level": "ERROR", f"{PREFIX}status_message": "too far", **metadata})
    assert (found.error, found.session_ids, found.user_id) == ("too far", ((4, "s-7"),), "u-1")
    whole = normalize(span({TYPE: "span", "session.id": "s-1", "langfuse.trace.metadata.thread_id": '"s-7"'}))
    assert whole.session_ids == ((3, "s-1"), (4, "s-7"))


def test_the_kind_of_untyped_spans_is_read_from_other_attributes() -> None:
    model = normalize(span({INPUT: '[{"role": "user", "content": "Weather in Oslo?"}]', "gen_ai.request.model": "m"}))
    assert (model.kind, model.input) == (Kind.LLM, (ASK,))
    tool = normalize(span({INPUT: '{"city": "Oslo"}', OUTPUT: "4 degrees.", "desk.tool.name": "weather"}))
    assert (tool.kind, tool.tool_name, tool.result) == (Kind.TOOL, "weather", Captured("4 degrees."))


def test_reasoning_tokens_are_added_to_the_output_if_the_total_counts_them_separately() -> None:
    beside = {"input": 122, "output": 54, "total": 188, "output_reasoning_tokens": 12}
    for details, made in ((beside, 66), ({**beside, "total": 176}, 54), ({"input": 122, "output": 54}, 54)):
        usage = read({TYPE: "generation", f"{PREFIX}usage_details": json.dumps(details)}).usage
        assert usage is not None
        assert (usage.input, usage.output) == (122, made)
