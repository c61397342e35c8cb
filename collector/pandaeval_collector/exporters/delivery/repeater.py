"""Runs exporters that send their whole state at an interval."""

from __future__ import annotations

import asyncio

from pandaeval_collector.base.runtime.backoff import Bell, finish
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
        self._bell = Bell()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._exporter.open()
        self._task = asyncio.create_task(self._run(), name=f"pandaeval-export-{self._exporter.name}")

    def wake(self) -> None:
        """Does nothing: new results are sent with the next interval."""

    async def stop(self) -> None:
        """Sends a last time, if that takes no more than a few seconds, then closes the exporter."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await finish(self._task, _FLUSH_S)
        await self._exporter.close()

    async def _run(self) -> None:
        while True:
            last = self._stopping
            wait = self._exporter.interval
            try:
                with self._standing.asking():
                    await self._exporter.send(last)
            except Exception as error:  # noqa: BLE001 - a sink that fails must not take the collector with it
                wait = self._standing.failed(error)
            else:
                self._standing.succeeded()
            if last:
                return
            await self._bell.sleep(wait)
