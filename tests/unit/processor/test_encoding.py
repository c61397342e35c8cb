"""Encoding many traces together gives the same result as encoding each trace alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest
from pandaeval_otel.processor import encoding
from pandaeval_otel.processor.collecting import Collecting, Part
from pandaeval_otel.processor.settings import Redact, Settings


def traces_of(service: str, number: int, schema_url: str = "") -> list[list[ReadableSpan]]:
    """Return traces of two spans with different scopes."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": service}, schema_url))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agents = provider.get_tracer("agents", "1", schema_url)
    found: list[list[ReadableSpan]] = []
    for at in range(number):
        with agents.start_as_current_span(f"run {at}") as root:
            root.add_event("asked", {"at": at})
            with provider.get_tracer("models").start_as_current_span("chat"):
                pass
        found.append([*exporter.get_finished_spans()])
        exporter.clear()
    return found


def collected(traces: Sequence[Sequence[ReadableSpan]], redact: Redact | None = None) -> Iterator[CompletedTrace]:
    """Yield complete traces of a single turn."""
    collecting = Collecting(Settings(redact=redact), lambda *_: None)
    collecting.take([span for spans in traces for span in spans], 1.0)
    parts: list[Part] = collecting.complete(1.0)
    return (SubmitTracesRequest.FromString(part.data).traces[0] for part in parts)


def test_traces_encoded_together_equal_traces_encoded_alone() -> None:
    traces = [*traces_of("shop", 3, "https://example.com/1"), *traces_of("support", 2)]
    found = [ExportTraceServiceRequest.FromString(each.spans) for each in collected(traces)]
    assert found == [encode_spans(spans) for spans in traces]


def test_a_trace_with_two_resources_is_encoded_with_both() -> None:
    [one], [other] = traces_of("shop", 1), traces_of("support", 1)
    for span in other:
        span._context = one[0].context
    [found] = collected([[*other, *one]])
    assert ExportTraceServiceRequest.FromString(found.spans) == encode_spans([*other, *one])


def test_100_traces_are_encoded_in_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def noted(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        calls.append(len(spans))
        return encode_spans(spans)

    monkeypatch.setattr(encoding, "encode_spans", noted)
    assert len([*collected(traces_of("shop", 100))]) == 100
    assert calls == [100, 100]


def test_a_redactor_that_fails_on_one_trace_loses_only_this_trace() -> None:
    def failing(key: str, text: str) -> str:
        if text == "run 41":
            raise ValueError(text)
        return text

    traces = traces_of("shop", 100)
    sent = {each.trace_id for each in collected(traces, failing)}
    assert sent == {spans[0].context.trace_id.to_bytes(16, "big") for at, spans in enumerate(traces) if at != 41}
