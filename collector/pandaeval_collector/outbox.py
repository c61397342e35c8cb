"""Results on their way out: every exporter has its own place in the line, and none waits for another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

import orjson

from pandaeval_collector import failpoints
from pandaeval_collector.exporters import Exporter, PermanentError
from pandaeval_collector.store import ResultRow, Store
from pandaeval_collector.telemetry import Telemetry

_log = logging.getLogger(__name__)

_BATCH = 512
_POLL_S = 0.5
_FIRST_RETRY_S, _LAST_RETRY_S = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class _Cursor:
    seq: int = 0
    position: str = ""


class Outbox:
    """Feeds one exporter from the store, from where it stopped. At least once in general; exactly once where the
    exporter's position makes repeats harmless."""

    def __init__(self, store: Store, exporter: Exporter, telemetry: Telemetry) -> None:
        self._store, self._exporter, self._telemetry = store, exporter, telemetry
        self._key = f"cursor:{exporter.name}"
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._cursor = _Cursor()
        self.healthy = True

    async def start(self) -> None:
        stored = self._store.get(self._key)
        if stored is not None:
            self._cursor = _Cursor(**orjson.loads(stored))
        await self._exporter.open(self._cursor.position)
        self._task = asyncio.create_task(self._run(), name=f"pandaeval-export-{self._exporter.name}")

    def wake(self) -> None:
        """There is something new."""
        self._wake.set()

    async def stop(self) -> None:
        """Delivers what is there once more (a sink that is down is not waited for), then closes the exporter."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._exporter.close()

    async def _run(self) -> None:
        retry = _FIRST_RETRY_S
        while True:
            stopping = self._stopping
            rows = self._store.results_after(self._cursor.seq, _BATCH)
            if rows:
                if await self._deliver(rows):
                    retry = _FIRST_RETRY_S
                    continue
                if stopping:
                    return
                await self._sleep(retry)
                retry = min(2 * retry, _LAST_RETRY_S)
            elif stopping:
                return
            else:
                await self._sleep(_POLL_S)

    async def _deliver(self, rows: list[ResultRow]) -> bool:
        name, position = self._exporter.name, self._cursor.position
        try:
            failpoints.reach("before_export")
            position = await self._exporter.export(rows)
            failpoints.reach("after_export")
            self._telemetry.add("pandaeval.exported", name, len(rows))
        except PermanentError as error:
            _log.warning("%s will not take %d results: %s", name, len(rows), error)
            self._telemetry.add("pandaeval.export.dropped", name, len(rows), "permanent")
        except Exception as error:  # noqa: BLE001 - a sink that fails must not take the collector with it
            if self.healthy:
                _log.warning("%s cannot be reached (%s); results wait in the store", name, error)
            self.healthy = False
            return False
        if not self.healthy:
            _log.info("%s is back", name)
        self.healthy = True
        self._cursor = _Cursor(rows[-1].seq, position)
        value = orjson.dumps({"seq": self._cursor.seq, "position": position}).decode()
        await asyncio.wrap_future(self._store.put(self._key, value))
        return True

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()
