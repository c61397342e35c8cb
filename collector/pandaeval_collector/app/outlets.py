"""Exporters of a running collector: find, start, limit and stop."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.config import Config
from pandaeval_collector.exporters import Exporter, Repeating, Surroundings
from pandaeval_collector.exporters.delivery.outbox import Outbox, Repeater
from pandaeval_collector.exporters.found import ways
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)

_MAX_AGE_S = 86_400.0
_DISK_SHARE = 0.2
_FULL = 0.95
_TIDY_S, _BOUND_EVERY = 1.0, 30


async def instance_id(store: Store) -> str:
    """Return this collector's random ID, kept in its store."""
    known = store.reads.get("instance_id")
    if known is None:
        known = str(uuid.uuid4())
        await asyncio.wrap_future(store.put("instance_id", known))
    return known


def configured(config: Config, around: Surroundings) -> Iterator[Exporter | Repeating]:
    around = replace(around, config=config)
    for way in ways():
        yield from way.exporters(getattr(config.exporters, way.name), around)


class Outlets:
    """Runs a collector's exporters. On one event loop."""

    def __init__(self, config: Config, around: Surroundings) -> None:
        self._store, self._telemetry = around.store, around.telemetry
        found = [*configured(config, around)]
        feed = [each for each in found if isinstance(each, Exporter)]
        repeat = [each for each in found if not isinstance(each, Exporter)]
        self._outboxes = [Outbox(around.store, exporter, around.telemetry) for exporter in feed]
        self._outlets: list[Outbox | Repeater] = [*self._outboxes]
        self._outlets += [Repeater(exporter, around.telemetry) for exporter in repeat]
        self._waiting: Counter[str] = Counter()
        self._tidied: Counter[str] = Counter()
        for signal in self.signals:
            read = functools.partial(self._waiting.__getitem__, signal)
            self._telemetry.gauge("pandaeval.queue.size", read, queue=f"outbox.{signal}")
        self._rounds = itertools.count()
        self._tidying: Every | None = None

    @property
    def signals(self) -> frozenset[str]:
        return frozenset(outbox.source for outbox in self._outboxes) - {"results"}

    async def start(self) -> None:
        for outlet in self._outlets:
            await outlet.start()
        self._tidying = Every(_TIDY_S, self._upkeep, "pandaeval-outlets", grace=_TIDY_S)

    def newest(self) -> dict[str, int]:
        """Return the newest item number per exported kind. Any thread."""
        found = {signal: self._store.outbox.newest(signal) for signal in self.signals}
        return {**found, "results": self._store.reads.newest_seq()}

    def have_sent(self, upto: Mapping[str, int]) -> bool:
        """Return whether every exporter has sent the items up to these numbers, by kind. Any thread."""
        return all(outbox.seq >= upto.get(outbox.source, 0) for outbox in self._outboxes)

    def wake(self) -> None:
        for outbox in self._outboxes:
            outbox.wake()

    async def stop(self) -> None:
        """Let all exporters send for a few seconds. The rest waits in the store."""
        await asyncio.gather(*(outlet.stop() for outlet in self._outlets))
        if self._tidying is not None:
            await self._tidying.stop()

    async def _upkeep(self) -> None:
        for signal, seq in self._cursors().items():  # deletes rows that all exporters of the signal have passed
            dropped = limit = 5000
            while dropped == limit and self._tidied[signal] != seq:
                dropped = await asyncio.wrap_future(self._store.outbox.forget_sent(signal, seq, limit))
            self._tidied[signal] = seq
            self._waiting[signal] = await asyncio.to_thread(self._store.outbox.waiting, signal, seq)
        if next(self._rounds) % _BOUND_EVERY == 0:
            await asyncio.wrap_future(self._store.keep_time())
            await self._bound()

    def _cursors(self) -> Mapping[str, int]:
        cursors: dict[str, int] = {}
        for outbox in self._outboxes:
            if outbox.source in self.signals:
                cursors[outbox.source] = min(outbox.seq, cursors.get(outbox.source, outbox.seq))
        return cursors

    async def _bound(self) -> None:
        """Delete the oldest waiting items beyond a day or a fifth of the disk budget, or to make room for spans."""
        while True:
            held = await asyncio.to_thread(self._store.outbox.size)
            excess = held - _room(held, self._store.size_bytes(), self._store.max_bytes)
            before, done = self._store.clock.running() - _MAX_AGE_S, self._cursors()
            gone = await asyncio.wrap_future(self._store.outbox.drop_unsent(before, max(0, excess), done))
            for (signal, reason), count in gone.items():
                self._telemetry.add(
                    "pandaeval.exporter.items", "dropped", count, reason, exporter="outbox", signal=signal
                )
            if gone.total():
                _log.warning(
                    "results were dropped before an exporter could send them (number by signal and reason): %s; "
                    "check the exporter, or raise store.max_bytes",
                    dict(gone),
                )
            if not gone:
                return


def _room(held: int, size: int, budget: int) -> int:
    return max(0, min(int(_DISK_SHARE * budget), int(_FULL * budget) - (size - held)))
