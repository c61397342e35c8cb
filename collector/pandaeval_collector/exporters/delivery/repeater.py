"""Runs exporters that send their whole state at an interval."""

from __future__ import annotations

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import Repeating
from pandaeval_collector.exporters.delivery.standing import SinkState

_FLUSH_S = 5.0


class Repeater:
    """Runs one :class:`pandaeval_collector.exporters.Repeating`."""

    def __init__(self, exporter: Repeating, telemetry: Telemetry) -> None:
        self._exporter = exporter
        signal = exporter.name.partition(".")[2]
        self._standing = SinkState(exporter.name, signal, telemetry, lambda: exporter.off)
        self._sending: Every | None = None

    async def start(self) -> None:
        await self._exporter.open()
        name = f"pandaeval-export-{self._exporter.name}"
        self._sending = Every(self._exporter.interval, self._send, name, last=True, grace=_FLUSH_S)

    def wake(self) -> None:
        """Does nothing: new results are sent with the next interval."""

    async def stop(self) -> None:
        """Sends a last time, if that takes no more than a few seconds, then closes the exporter."""
        if self._sending is not None:
            await self._sending.stop()
        await self._exporter.close()

    async def _send(self) -> float | None:
        assert self._sending is not None
        interval = self._exporter.interval
        try:
            with self._standing.asking():
                await self._exporter.send(self._sending.is_last)
        except Exception as error:  # noqa: BLE001 - a sink that fails must not take the collector with it
            return self._standing.failed(error)
        self._standing.succeeded()
        return interval
