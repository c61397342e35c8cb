"""The series over OTLP: the whole table every interval, so that a sink that was away has missed nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._otlp.answers import BatchTooLargeError, RefusedError
from pandaeval_collector.exporters._otlp.points import metrics
from pandaeval_collector.exporters._otlp.sink import OtlpSink
from pandaeval_collector.exporters._otlp.transport import Envelope, Transport
from pandaeval_collector.exporters.own import own_points
from pandaeval_collector.exporters.zero_first import ZeroFirst, new_ones
from pandaeval_collector.store.series import Point

_MAX_POINTS = 500
"""In one request: no more than 2 MiB, whatever their names."""


class MetricsExporter:
    """Scores and the collector's own numbers. Implements ``Repeating``."""

    name = "otlp.metrics"

    def __init__(
        self, transport: Transport, envelope: Envelope, series: ZeroFirst, telemetry: Telemetry, interval: float
    ) -> None:
        self.interval = interval
        self._transport, self._envelope, self._series, self._telemetry = transport, envelope, series, telemetry
        self._sink = OtlpSink(self.name)
        self._max_points = _MAX_POINTS

    @property
    def off(self) -> bool:
        return self._sink.off

    async def open(self) -> None:
        await self._transport.open()

    async def send(self, last: bool = False) -> None:
        await self._send(own_points(self._telemetry), time.time())
        had_new = await self._send_series(hold=True)
        if last and had_new:
            await self._send_series(hold=False)  # who knows when else the values would follow their zeros

    async def close(self) -> None:
        await self._transport.close()

    async def _send_series(self, hold: bool) -> bool:
        """Sends all series, a page at a time; returns whether some stood at 0 for being new."""
        now = time.time()
        pages = self._series.pages(now, hold)
        had_new = False
        while (points := await asyncio.to_thread(next, pages, None)) is not None:
            had_new = had_new or bool(new_ones(points))
            await self._send(points, now)
        return had_new

    async def _send(self, points: Sequence[Point], now: float) -> None:
        while points and not self._sink.left_alone:
            batch = points[: self._max_points]
            request = await asyncio.to_thread(self._encoded, batch, now)
            try:
                response = await self._transport.send(request)
            except RefusedError as error:
                if isinstance(error, BatchTooLargeError) and len(batch) > 1:
                    self._max_points = len(batch) // 2
                    continue
                self._sink.refused(len(batch), error)
                self._count_dropped(len(batch), error.reason)
            else:
                self._count_dropped(self._sink.took(len(batch), response), "rejected_by_sink")
                await self._series.shown(new_ones(batch), now)
            points = points[len(batch) :]

    def _encoded(self, batch: Sequence[Point], now: float) -> bytes:
        return self._envelope.request(metrics(batch, int(now * 1e9)))

    def _count_dropped(self, points: int, reason: str) -> None:
        self._telemetry.add("pandaeval.exporter.items", "dropped", points, reason, exporter="otlp", signal="metrics")
