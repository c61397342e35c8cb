"""Semantic Kernel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Message
from pandaeval_otel.model.raw import RawLog
from tests.unit.dialects.composed import ASK, BRIEF, CALL, SAID, log, seen, texts

SCOPE = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


def message(event: str, body: dict[str, Any]) -> RawLog:
    """Return a Python log record of an event."""
    return log("", json.dumps(body), **{"event.name": event})


@pytest.mark.parametrize("operation", ["chat.completions", "text.completions", "chat"])
def test_operations_of_model_calls(operation: str) -> None:
    assert seen({"gen_ai.operation.name": operation}, SCOPE).kind is Kind.LLM


def test_an_empty_input_list_of_an_agent_means_input_not_captured() -> None:
    made = [{"role": "assistant", "content": SAID, "name": "trip_bot"}]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "trip_bot",
        "gen_ai.input.messages": "[]",
        "gen_ai.output.messages": json.dumps(made),
    }
    span = seen(attributes, SCOPE)
    assert (span.input, texts(span.output)) == (None, [("assistant", SAID)])


def test_messages_are_read_from_log_records() -> None:
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    answer = {"role": "assistant", "tool_calls": [{"id": "c9", "type": "function", "function": function}]}
    logs = (
        message("gen_ai.system.message", {"role": "system", "content": "Be brief.", "name": "trip_bot"}),
        message("gen_ai.user.message", {"role": "user", "content": "Weather in Oslo?"}),
        log("", "processing 1 tool calls in parallel."),
        message("gen_ai.choice", {"message": answer, "finish_reason": "tool_calls"}),
    )
    span = seen({"gen_ai.operation.name": "chat"}, SCOPE, logs=logs)
    assert (span.input, span.system) == ((BRIEF, ASK), "Be brief.")
    assert span.output == (Message("assistant", (CALL,), "tool_calls"),)
