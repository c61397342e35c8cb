"""OpenLIT."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.dialects.openlit import DIALECT
from pandaeval_otel.model import NOT_CAPTURED, Captured, Kind, Message, ToolRequest
from pandaeval_otel.model.raw import RawSpan, Scope
from pandaeval_otel.normal.spans import normalize
from pandaeval_otel.normal.speech import question_of
from tests.unit.dialects.composed import seen

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.tool.name": "get_weather, book",
    "gen_ai.tool.call.id": "c1, c2",
    "gen_ai.tool.args": '{"city": "Oslo", "days": 2}, {"sailing": 7}',
}


def span(attributes: dict[str, Any]) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes, scope=Scope("openlit.instrumentation.openai"))


def requests(attributes: dict[str, Any]) -> tuple[ToolRequest, ...]:
    whole = normalize(span(attributes))
    assert whole.kind is Kind.LLM
    assert whole.tool_name == ""
    return whole.output[0].tool_requests if whole.output else ()


def test_joined_tool_calls_are_split_if_there_is_no_message() -> None:
    assert requests(CHAT) == (
        ToolRequest("get_weather", {"city": "Oslo", "days": 2}, "c1"),
        ToolRequest("book", {"sailing": 7}, "c2"),
    )
    assert requests({**CHAT, "gen_ai.tool.args": '{"city": "Os'}) == (
        ToolRequest("get_weather", None, "c1"),
        ToolRequest("book", None, "c2"),
    )


def test_the_output_message_wins_over_joined_tool_calls() -> None:
    message = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {}}]}]'
    )
    assert requests({**CHAT, "gen_ai.output.messages": message}) == (ToolRequest("get_weather", {}, "c1"),)


def test_text_beside_joined_tool_calls_is_marked_as_not_captured() -> None:
    whole = normalize(span(CHAT))
    assert whole.output is not None
    assert whole.output[0].parts[0] is NOT_CAPTURED
    assert whole.output == (Message("assistant", whole.output[0].parts),)


def test_a_tool_span_with_openlit_attributes_is_read() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    given = {"gen_ai.tool.args": '{"city": "Oslo"}', "gen_ai.tool.output": '{"temp_c": 4}'}
    whole = normalize(span({**attributes, **given}))
    assert (whole.kind, whole.tool_name) == (Kind.TOOL, "get_weather")
    assert (whole.arguments, whole.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    assert normalize(span({**attributes, "gen_ai.tool.name": "final_answer"})).kind is Kind.STEP


def test_other_operations_are_not_read_by_openlit() -> None:
    assert DIALECT.read(span({"gen_ai.operation.name": "embeddings"}), ()) is None
    assert DIALECT.read(span({"gen_ai.operation.name": ["chat"]}), ()) is None


def test_an_invoke_agent_span_of_a_framework_method_is_a_step() -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m"}
    found = seen(attributes, "openlit.instrumentation.crewai", name="invoke_agent continue_iteration")
    assert (found.kind, found.agent_name) == (Kind.STEP, "")


def test_consecutive_responses_api_questions_are_kept_as_separate_turns() -> None:
    given = json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": each}]} for each in ("Hi.", "And Rome?")]
    )
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": given}
    responses = normalize(span({**attributes, "openai.api.type": "responses"}))
    assert [message.role for message in responses.input or ()] == ["user", "assistant", "user"]
    assert (question_of(responses).text, question_of(normalize(span(attributes))).text) == (
        "And Rome?",
        "Hi.\nAnd Rome?",
    )
