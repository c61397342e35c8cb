"""Bedrock AgentCore."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import ASK, SAID, log, seen, texts

SCOPE = "strands.telemetry.tracer"
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "trip_bot", "session.id": "s-1"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}


def body(given: Any, made: Any) -> dict[str, Any]:
    return {
        "input": {"messages": [{"role": "user", "content": given}]},
        "output": {"messages": [{"role": "assistant", "content": made}]},
    }


BODIES = {
    "a map with blocks as text": body(
        {"content": '[{"text": "Weather in Oslo?"}]'}, {"message": SAID, "finish_reason": "end_turn"}
    ),
    "everything as text": body(
        json.dumps({"content": '[{"text": "Weather in Oslo?"}]'}),
        json.dumps({"message": json.dumps([{"text": SAID}]), "finish_reason": "end_turn"}),
    ),
    "plain text": body("Weather in Oslo?", SAID),
    "a graph's state": body(
        json.dumps({"inputs": {"messages": [["user", "Weather in Oslo?"]]}}),
        json.dumps({"outputs": {"messages": [{"type": "ai", "content": SAID}]}}),
    ),
    "a chain's text": body(json.dumps({"inputs": "Weather in Oslo?"}), json.dumps({"outputs": SAID})),
}


@pytest.mark.parametrize("said", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("written", [lambda value: value, json.dumps], ids=["map", "text"])
def test_agent_input_and_output_are_read_from_log_records(said: dict[str, Any], written: Any) -> None:
    span = seen(AGENT, SCOPE, logs=(log(SCOPE, written(said)),))
    assert (span.kind, span.agent_name) == (Kind.AGENT, "trip_bot")
    assert texts(span.input) == [("user", "Weather in Oslo?")]
    assert texts(span.output) == [("assistant", SAID)]


def test_tool_arguments_and_result_are_read_from_log_records() -> None:
    said = {
        "input": {
            "messages": [{"role": "tool", "content": {"content": '{"city": "Oslo"}', "role": "tool", "id": "c9"}}]
        },
        "output": {
            "messages": [{"role": "assistant", "content": {"message": '[{"text": "{\\"temp_c\\": 4}"}]', "id": "c9"}}]
        },
    }
    span = seen(TOOL, SCOPE, logs=(log(SCOPE, said),))
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    assert span.tool_call_id == "c9"


def test_several_log_records_of_one_span_are_merged() -> None:
    halves = [{side: half} for side, half in BODIES["plain text"].items()]
    span = seen(AGENT, SCOPE, logs=tuple(log(SCOPE, half) for half in halves))
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


@pytest.mark.parametrize("other", [None, "input", '{"input"', {"input": "x"}, {"output": {"messages": []}}, [1], 7])
def test_log_records_of_other_shapes_are_ignored(other: Any) -> None:
    assert "agentcore" not in seen(AGENT, SCOPE, logs=(log("x", other),)).dialects
