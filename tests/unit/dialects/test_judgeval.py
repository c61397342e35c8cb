"""Judgeval."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind, Span, ToolDefinition, Usage
from tests.unit.dialects.composed import ASK, BRIEF, CALL, SAID, SCHEMA, seen as normal, texts


def seen(kind: str, attributes: dict[str, Any], **more: Any) -> Span:
    attributes = {"judgment.span_kind": kind, "judgment.session_id": "s-1", **attributes}
    return normal(attributes, "judgeval", name="weather_desk", **more)


def test_a_model_call() -> None:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": BRIEF.text}, {"role": "user", "content": ASK.text}]
    call = {"id": "c9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    answer = {"role": "assistant", "content": SAID, "tool_calls": [call]}
    found = seen(
        "llm",
        {
            "gen_ai.prompt": json.dumps({"model": "m", "messages": messages, "tools": tools}),
            "gen_ai.completion": json.dumps({"choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]}),
            "judgment.llm.model": "m-1",
            "judgment.usage.non_cached_input_tokens": 10,
            "judgment.usage.cache_read_input_tokens": 2,
            "judgment.usage.output_tokens": 3,
        },
    )
    assert (found.kind, found.response_model) == (Kind.LLM, "m-1")
    assert texts(found.input) == [("system", BRIEF.text), ("user", ASK.text)]
    assert texts(found.output) == [("assistant", SAID)]
    assert [request for message in found.output or () for request in message.tool_requests] == [CALL]
    assert found.tools == (ToolDefinition("get_weather", "", SCHEMA),)
    assert found.usage == Usage(12, 3, cache_read=2)


def test_a_run_and_its_tool() -> None:
    found = seen("agent", {"judgment.input": json.dumps({"question": ASK.text}), "judgment.output": SAID})
    assert (found.kind, found.agent_name, found.session_ids) == (Kind.AGENT, "weather_desk", ((4, "s-1"),))
    assert texts(found.input) + texts(found.output) == [("user", ASK.text), ("assistant", SAID)]
    found = seen("tool", {"judgment.input": '{"city": "Oslo"}', "judgment.output": '{"temp_c": 4}'})
    assert (found.tool_name, found.arguments, found.result) == (
        "weather_desk",
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
    )
    assert seen("span", {}).kind is Kind.WORKFLOW
    assert seen("span", {}, parent_id="d" * 16).kind is Kind.STEP
