"""mcp-agent."""

from __future__ import annotations

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import ASK, SAID, event, seen, texts


def test_a_run() -> None:
    attributes = {"message.content": ASK.text, "response.0.content": "I look.", "response.10.content": SAID}
    found = seen(attributes, "desk", name="AnthropicAugmentedLLM.weather_desk.generate")
    assert (found.kind, found.agent_name) == (Kind.AGENT, "weather_desk")
    assert texts(found.input) + texts(found.output) == [("user", ASK.text), ("assistant", SAID)]
    assert seen({}, "desk", name="AnthropicAugmentedLLM.weather_desk.generate_str").kind is Kind.STEP


def test_a_call_with_three_spans_counts_as_one_tool_call() -> None:
    call = {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c9", "tool_args": '{"city": "Oslo"}'}
    result = {"result.isError": False, "result.content.0.type": "text", "result.content.0.text": '{"temp_c": 4}'}
    found = seen(call | result, "desk", name="OpenAIAugmentedLLM.weather_desk.execute_tool_call")
    assert (found.kind, found.tool_name, found.tool_call_id) == (Kind.TOOL, "look", "c9")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    for name in ("OpenAIAugmentedLLM.weather_desk.call_tool", "Agent.weather_desk.call_tool"):
        assert seen(call | result, "desk", name=name).kind is Kind.STEP
    assert seen(call | result, "desk", name="Agent of others").kind is Kind.TOOL


def test_a_failed_tool_call_has_an_error() -> None:
    call = {"gen_ai.tool.name": "look", "result.isError": True}
    raised = event("exception", **{"exception.message": "too far"})
    found = seen(call, "desk", [raised], name="OpenAIAugmentedLLM.weather_desk.execute_tool_call", status_code=2)
    assert found.error is not None
    assert "too far" in found.error
    told = {**call, "result.content.0.text": "no such city"}
    assert seen(told, "desk", name="OpenAIAugmentedLLM.weather_desk.execute_tool_call").error == "no such city"
