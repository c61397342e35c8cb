"""Runs exporters independently, from the outbox or at an interval."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator

import orjson

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.every import Backoff, Every
from pandaeval_collector.base.telemetry import EXPORTER_STATE, Telemetry
from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.exporters import Exporter, Repeating, RetryLaterError, Sent
from pandaeval_collector.store import DamagedError, Store
from pandaeval_otel.base.component_errors import ERRORS, EXPORTER

_log = logging.getLogger(__name__)

UP, DOWN, OFF = 1, 0, -1
_BATCH = 512
_POLL_S = 0.5
_FLUSH_S = 5.0


class Outlet(ABC):
    """Runs an exporter, with back-off after failures. Logs state changes."""

    def __init__(self, exporter: Exporter | Repeating, signal: str, telemetry: Telemetry) -> None:
        self._sink, self._backoff, self._is_up = exporter, Backoff(), True
        self._rounds: Every | None = None
        way = exporter.name.partition(".")[0]
        telemetry.gauge(EXPORTER_STATE, lambda: self.state, exporter=way, signal=signal)

    @property
    def state(self) -> int:
        """1 up, 0 down, -1 off because the sink rejects this signal."""
        if not self._is_up:
            return DOWN
        return OFF if self._sink.off else UP

    async def start(self) -> None:
        await self._open()
        name = f"pandaeval-export-{self._sink.name}"
        self._rounds = Every(_POLL_S, self._round, name, last=True, grace=_FLUSH_S)

    async def stop(self) -> None:
        """Send for a few seconds, then close the exporter."""
        if self._rounds is not None:
            await self._rounds.stop()
        await self._sink.close()

    @abstractmethod
    async def _open(self) -> None:
        """Open the exporter."""

    @abstractmethod
    async def _send(self, last: bool) -> float | None:
        """Send. Returns seconds to the next send; ``None`` if more may be ready."""

    async def _round(self) -> float | None:
        last = self._rounds is not None and self._rounds.is_last
        try:
            while (wait := await self._send(last)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - a failing sink must not stop the collector
            if self._is_up:
                kind = type(error).__name__
                _log.warning("%s: delivery is paused, and results wait (%s: %s)", self._sink.name, kind, told(error))
            self._is_up = False
            return self._backoff.failed(error.after_s if isinstance(error, RetryLaterError) else None)
        return wait

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except RetryLaterError:
            raise
        except Exception as error:
            ERRORS.note(EXPORTER, self._sink.name, error)
            raise
        if not self._is_up:
            _log.info("%s is back", self._sink.name)
        self._is_up = True
        self._backoff.succeeded()


class Outbox(Outlet):
    """Feeds an exporter at least once; exactly once if it stores a position. ``source``: its signal, or ``results``."""

    def __init__(self, store: Store, exporter: Exporter, telemetry: Telemetry) -> None:
        super().__init__(exporter, exporter.source, telemetry)
        self._store, self._exporter, self._telemetry = store, exporter, telemetry
        self.source = exporter.source
        self._key = f"cursor:{exporter.name}"
        self.seq, self._position = 0, ""
        """Number of the last item delivered or dropped, and the exporter's position."""
        reads_results = self.source == "results"
        self._read = store.reads.results_after if reads_results else functools.partial(store.outbox.after, self.source)

    def wake(self) -> None:
        if self._rounds is not None and self.state:  # an exporter that is down keeps to its waiting time
            self._rounds.ring()

    async def _open(self) -> None:
        stored = self._store.reads.get(self._key)
        if stored is not None:
            cursor = orjson.loads(stored)
            self.seq, self._position = cursor["seq"], cursor["position"]
        begins = await self._exporter.open(self._position)
        if stored is None or begins != self._position:
            await self._note(self.seq, begins)

    async def _send(self, last: bool) -> float | None:
        try:
            rows = self._read(self.seq, _BATCH)
        except DamagedError as error:
            _log.error("%s: %s", self._exporter.name, error)
            self._count(Sent(error.items, dropped={"damaged": error.items}))
            await self._note(error.seq, self._position)
            return None
        if not rows:
            return _POLL_S
        failpoints.reach("before_export")
        with self._asking():
            sent = await self._exporter.export(rows)
        failpoints.reach("after_export")
        self._count(sent)
        await self._note(rows[sent.rows - 1].seq, sent.position)
        return None

    async def _note(self, seq: int, position: str) -> None:
        self.seq, self._position = seq, position
        cursor = orjson.dumps({"seq": seq, "position": position}).decode()
        await asyncio.wrap_future(self._store.put(self._key, cursor))

    def _count(self, sent: Sent) -> None:
        way = self._exporter.name.partition(".")[0]
        add = functools.partial(self._telemetry.add, "pandaeval.exporter.items", exporter=way, signal=self.source)
        add("sent", sent.rows - sum(sent.dropped.values()))
        for reason, count in sent.dropped.items():
            add("dropped", count, reason)


class Repeater(Outlet):
    def __init__(self, exporter: Repeating, telemetry: Telemetry) -> None:
        super().__init__(exporter, exporter.name.partition(".")[2], telemetry)
        self._exporter = exporter

    async def _open(self) -> None:
        await self._exporter.open()

    async def _send(self, last: bool) -> float | None:
        with self._asking():
            await self._exporter.send(last)
        return self._exporter.interval
