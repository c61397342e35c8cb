"""A script with the real OpenTelemetry SDK.

    python sdk_sender.py grpc|http ENDPOINT TRACES TOLD_FILE

Runs ``TRACES`` agents. Writes each batch result to ``TOLD_FILE`` as JSON lines: ``acknowledged``, ``spans``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class Telling(SpanExporter):
    """Forwards batches and records the answers."""

    def __init__(self, exporter: SpanExporter, spans_file: Path) -> None:
        self._exporter, self._told = exporter, spans_file

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        acknowledged = False
        try:
            result = self._exporter.export(spans)
            acknowledged = result is SpanExportResult.SUCCESS
        finally:
            contexts = [span.get_span_context() for span in spans]
            ids = [[f"{each.trace_id:032x}", f"{each.span_id:016x}"] for each in contexts if each is not None]
            with self._told.open("a") as file:
                file.write(json.dumps({"acknowledged": acknowledged, "spans": ids}) + "\n")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def exporter(protocol: str, endpoint: str) -> SpanExporter:
    """Return the SDK's exporter with its own retries."""
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(endpoint=endpoint, insecure=True)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(endpoint=f"{endpoint}/v1/traces")


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def main(protocol: str, endpoint: str, traces: int, spans_file: Path) -> None:
    provider = TracerProvider(resource=Resource({"service.name": "sdk"}))
    batches = BatchSpanProcessor(Telling(exporter(protocol, endpoint), spans_file), schedule_delay_millis=100)
    provider.add_span_processor(batches)
    tracer = provider.get_tracer("sdk_sender")
    for number in range(traces):
        talk = {
            "gen_ai.conversation.id": f"sdk-{number % 4}",
            "gen_ai.input.messages": said("user", f"Where is parcel {number}?"),
            "gen_ai.output.messages": said("assistant", f"Parcel {number} is on its way."),
        }
        agent = {**talk, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
        with tracer.start_as_current_span("invoke_agent helper", attributes=agent):
            for _ in range(2):
                with tracer.start_as_current_span("chat", attributes={**talk, "gen_ai.operation.name": "chat"}):
                    time.sleep(0.01)
    provider.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
