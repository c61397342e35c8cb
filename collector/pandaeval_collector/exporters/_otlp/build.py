"""Builds one exporter per signal from the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandaeval_collector.exporters._otlp.answers import BatchTooLargeError, OtlpSink, RefusedError
from pandaeval_collector.exporters._otlp.connections import GrpcTransport, HttpTransport, Transport
from pandaeval_collector.exporters._otlp.metrics import MetricsExporter
from pandaeval_collector.exporters._otlp.transport import Envelope, Trust, target
from pandaeval_collector.exporters._protocol import Exporter, Repeating, Row, Sent, Surroundings
from pandaeval_collector.exporters.otlp import SIGNALS, Otlp
from pandaeval_collector.exporters.zero_first import ZeroFirst

_MAX_ROWS = 512
_MAX_BYTES = 2 << 20
"""Half of what gRPC servers take by default."""


class ItemExporter:
    """Exports one of the signals ``logs`` and ``traces``. Implements ``Exporter``."""

    def __init__(self, signal: str, transport: Transport, envelope: Envelope) -> None:
        self.name, self.source = f"otlp.{signal}", signal
        self._transport, self._envelope = transport, envelope
        self._sink = OtlpSink(self.name)
        self._max_rows = _MAX_ROWS

    @property
    def off(self) -> bool:
        return self._sink.off

    async def open(self, position: str) -> str:
        await self._transport.open()
        return ""

    async def export(self, rows: Sequence[Row]) -> Sent:
        if self._sink.left_alone:
            return Sent(len(rows), dropped={"unimplemented": len(rows)})
        while True:
            taken = _fitting(rows[: self._max_rows])
            try:
                response = await self._transport.send(self._envelope.request(row.body for row in taken))
            except RefusedError as error:
                if isinstance(error, BatchTooLargeError) and len(taken) > 1:
                    self._max_rows = len(taken) // 2
                    continue
                self._sink.refused(len(taken), error)
                return Sent(len(taken), dropped={error.reason: len(taken)})
            self._max_rows = min(_MAX_ROWS, 2 * self._max_rows)
            return Sent(len(taken), dropped={"rejected_by_sink": self._sink.took(len(taken), response)})

    async def close(self) -> None:
        await self._transport.close()


def _fitting(rows: Sequence[Row]) -> Sequence[Row]:
    """Takes as many items as fit into one request, at least one."""
    size = 0
    for index, row in enumerate(rows):
        size += len(row.body)
        if size > _MAX_BYTES:
            return rows[: max(1, index)]
    return rows


def build(settings: Otlp, around: Surroundings) -> Iterator[Exporter | Repeating]:
    """Makes one exporter for each signal with an endpoint. The exporters are not open yet."""
    trust = Trust(settings.certificate, settings.client_certificate, settings.client_key)
    envelope, interval = Envelope(around.instance_id), settings.metrics_interval
    headers = around.environ.get(settings.headers_env, "") if settings.headers_env else ""
    for signal in SIGNALS:
        endpoint, own = settings.endpoint_of(signal), getattr(settings, signal)
        if endpoint is None:
            continue
        own_path = own.endpoint is not None
        where = target(endpoint, signal, settings.protocol, settings.insecure, headers=headers, own_path=own_path)
        transport = GrpcTransport(where, signal, trust) if settings.protocol == "grpc" else HttpTransport(where, trust)
        if signal == "metrics":
            # A little less than the interval: timers are not exact, and one zero is enough.
            series = ZeroFirst(around.store, "otlp", 0.9 * interval)
            yield MetricsExporter(transport, envelope, series, around.telemetry, interval)
        else:
            yield ItemExporter(signal, transport, envelope)
