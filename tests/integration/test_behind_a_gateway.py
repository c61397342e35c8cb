"""An agent is scored if the spans of its calling service never arrive."""

from __future__ import annotations

import json
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from pandaeval_otel import PandaEvalSpanProcessor
from support.collector import CollectorProcess


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def test_an_agent_behind_a_gateway_is_scored(tmp_path: Path) -> None:
    gateway = SpanContext(0xA1, 0xB2, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.input.messages": _message("user", "When does the harbour library open on Monday?"),
        "gen_ai.output.messages": _message("assistant", "The harbour library opens at nine on Monday."),
    }
    with CollectorProcess(tmp_path, {"PANDAEVAL_CLOSE__QUIET": "1s"}) as collector:
        collector.start()
        provider = TracerProvider()
        provider.add_span_processor(PandaEvalSpanProcessor(endpoint=collector.grpc))
        context = trace.set_span_in_context(NonRecordingSpan(gateway))
        with provider.get_tracer("agent").start_as_current_span("invoke_agent desk", context, attributes=attributes):
            pass
        provider.shutdown()
        collector.until(lambda: bool(collector.results()), "scored")
        outcomes = {result["metric"]: result["outcome"] for result in collector.results()}
    assert outcomes["response"] == outcomes["coherence"] == "scored"
