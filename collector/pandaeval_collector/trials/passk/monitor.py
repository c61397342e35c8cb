"""Shows what a running collector learns of repeated trials and of streams as gauges, and keeps it over restarts."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import ResultRow, Store

_log = logging.getLogger(__name__)


class Watch(Protocol):
    """What is learnt from results. ``key``: under which the store keeps it."""

    key: str

    def take(self, rows: Sequence[ResultRow]) -> bool: ...

    def gauges(self) -> Mapping[tuple[str, Attributes], float]: ...

    def state(self) -> Any: ...

    def restore(self, state: Any) -> None: ...


class Monitor:
    """Feeds committed results to ``watches``. Every ``interval`` seconds in which something came, their gauges are
    calculated on a thread and their states go into the store: a crash forgets what came since. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry, watches: Sequence[Watch], interval: float) -> None:
        self._store, self._watches, self._interval = store, watches, interval
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._changed: set[str] = set()
        self._bell, self._stopping = Bell(), False
        self._task: asyncio.Task[None] | None = None
        for watch in watches:
            self._restore(watch)
        telemetry.family(lambda: self._shown)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pandaeval-trials")

    async def stop(self) -> None:
        """Returns when everything that came is in the store."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await self._task

    def take(self, rows: Sequence[ResultRow]) -> None:
        """Takes in the new rows of a commit."""
        self._changed.update(watch.key for watch in self._watches if watch.take(rows))

    async def _run(self) -> None:
        while True:
            ends = self._stopping  # what came before is kept by this round
            try:
                await self._round()
            except (sqlite3.Error, OSError) as error:
                _log.error("what trials and streams showed could not be kept (%s); trying again", error)
            if ends:
                return
            await self._bell.sleep(self._interval)

    async def _round(self) -> None:
        changed, self._changed = self._changed, set()
        if not changed:
            return
        states = {watch.key: orjson.dumps(watch.state()).decode() for watch in self._watches if watch.key in changed}
        self._shown = await asyncio.to_thread(self._calculate)
        for key, state in states.items():
            await asyncio.wrap_future(self._store.put(key, state))

    def _calculate(self) -> dict[tuple[str, Attributes], float]:
        return {name: value for watch in self._watches for name, value in watch.gauges().items()}

    def _restore(self, watch: Watch) -> None:
        kept = self._store.get(watch.key)
        if kept is None:
            return
        try:
            watch.restore(orjson.loads(kept))
            self._changed.add(watch.key)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("what was kept of %s cannot be read (%s); it begins anew", watch.key, error)
