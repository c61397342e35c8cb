"""Feeds exporters from the outbox: each has a cursor of its own, and none waits for another."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.backoff import Bell, finish
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import Exporter, Row, Sent
from pandaeval_collector.exporters.delivery.standing import SinkState
from pandaeval_collector.store import DamagedError, Store

_log = logging.getLogger(__name__)

_BATCH = 512
_POLL_S = 0.5
_FLUSH_S = 5.0


@dataclass(frozen=True, slots=True)
class _Cursor:
    seq: int = 0
    position: str = ""


class Outbox:
    """Feeds one exporter, from the item at which it stopped. Delivers at least once; exactly once if the exporter
    stores its position with the cursor (a file's length, say) and can go back to it."""

    def __init__(self, store: Store, exporter: Exporter, telemetry: Telemetry) -> None:
        self._store, self._exporter, self._telemetry = store, exporter, telemetry
        self._standing = SinkState(exporter.name, exporter.source, telemetry, lambda: exporter.off)
        self._key = f"cursor:{exporter.name}"
        self._bell = Bell()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._cursor = _Cursor()

    @property
    def source(self) -> str:
        """The signal that the exporter sends, or ``results``."""
        return self._exporter.source

    @property
    def seq(self) -> int:
        """The number of the last item that was delivered, or dropped and counted."""
        return self._cursor.seq

    async def start(self) -> None:
        stored = self._store.reads.get(self._key)
        if stored is not None:
            self._cursor = _Cursor(**orjson.loads(stored))
        begins = await self._exporter.open(self._cursor.position)
        if stored is None or begins != self._cursor.position:
            await self._note(_Cursor(self._cursor.seq, begins))
        self._task = asyncio.create_task(self._run(), name=f"pandaeval-export-{self._exporter.name}")

    def wake(self) -> None:
        """Tells the outbox that there are new items."""
        if self._standing.state:  # an exporter that is down keeps to its waiting time
            self._bell.ring()

    async def stop(self) -> None:
        """Delivers what it can within a few seconds, then closes the exporter."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await finish(self._task, _FLUSH_S)
        await self._exporter.close()

    async def _run(self) -> None:
        while True:
            stopping = self._stopping
            try:
                found_any = await self._deliver()
            except Exception as error:  # noqa: BLE001 - a sink that fails must not take the collector with it
                wait = self._standing.failed(error)
                found_any = False
            else:
                wait = _POLL_S
            if not found_any:
                if stopping:
                    return
                await self._bell.sleep(wait)

    async def _deliver(self) -> bool:
        """Delivers one batch; returns whether there was one."""
        try:
            rows = self._read()(self._cursor.seq, _BATCH)
        except DamagedError as error:
            _log.error("%s: %s", self._exporter.name, error)
            self._count(Sent(error.items, dropped={"damaged": error.items}))
            await self._note(_Cursor(error.seq, self._cursor.position))
            return True
        if not rows:
            return False
        failpoints.reach("before_export")
        with self._standing.asking():
            sent = await self._exporter.export(rows)
        failpoints.reach("after_export")
        self._standing.succeeded()
        self._count(sent)
        await self._note(_Cursor(rows[sent.rows - 1].seq, sent.position))
        return True

    async def _note(self, cursor: _Cursor) -> None:
        self._cursor = cursor
        value = orjson.dumps({"seq": cursor.seq, "position": cursor.position}).decode()
        await asyncio.wrap_future(self._store.put(self._key, value))

    def _read(self) -> Callable[[int, int], Sequence[Row]]:
        if self.source == "results":
            return self._store.reads.results_after
        return functools.partial(self._store.reads.outbox_after, self.source)

    def _count(self, sent: Sent) -> None:
        exporter = self._exporter.name.partition(".")[0]
        add = functools.partial(
            self._telemetry.add, "pandaeval.exporter.items", exporter=exporter, signal=self._exporter.source
        )
        add("sent", sent.rows - sum(sent.dropped.values()))
        for reason, count in sent.dropped.items():
            add("dropped", count, reason)
