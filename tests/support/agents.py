"""A small agent, traced with GenAI attributes or log events."""

from __future__ import annotations

import json
import random
from typing import Any

from opentelemetry.trace import SpanKind, Tracer

_QUESTIONS = (
    ("Will it rain in Oslo?", "It will rain in Oslo this evening.", "get_weather"),
    ("Where is my parcel?", "Your parcel is on its way and comes tomorrow.", "track_parcel"),
    ("How much is a ticket to Rome?", "A ticket to Rome costs 24 euros.", "get_fare"),
)


def run_agent(tracer: Tracer, seed: int = 0) -> str:
    """Run the agent: model, tool, model. Return the trace ID."""
    question, answer, tool = random.Random(seed).choice(_QUESTIONS)
    asked = _messages("user", f"{question} ({seed})")
    with tracer.start_as_current_span("invoke_agent helper") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"})
        agent.set_attribute("gen_ai.input.messages", asked)
        _model(tracer, asked, None)
        with tracer.start_as_current_span(f"execute_tool {tool}") as call:
            call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool})
            call.set_attributes(
                {"gen_ai.tool.call.arguments": json.dumps({"n": seed}), "gen_ai.tool.call.result": "ok"}
            )
        _model(tracer, asked, answer)
        agent.set_attribute("gen_ai.output.messages", _messages("assistant", answer))
        return f"{agent.get_span_context().trace_id:032x}"


def _model(tracer: Tracer, asked: str, answer: str | None) -> None:
    with tracer.start_as_current_span("chat small", kind=SpanKind.CLIENT) as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"})
        span.set_attribute("gen_ai.input.messages", asked)
        if answer is not None:
            span.set_attribute("gen_ai.output.messages", _messages("assistant", answer))


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def scored(results: list[dict[str, Any]]) -> set[str]:
    """Return the IDs of traces with a trace-level result."""
    return {each["trace_id"] for each in results if each["level"] == "trace"}
