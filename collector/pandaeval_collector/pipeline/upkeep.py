"""Maintains the store: deletes old rows and checks that writing works."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.runtime.garbage import collect_recent
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.store import Store
from pandaeval_collector.store.deleting import complete

_log = logging.getLogger(__name__)

_FORGET = 500
"""Rows deleted per step. Senders wait for a step, about 40 ms with freed pages."""
_KEEP = 100
"""Traces that are compressed in one step."""
_MOST_KEPT = 0.2
"""Maximum share of the disk budget for kept spans."""
_CROWDED, _FULL = 0.7, 0.9
"""Used shares of the disk budget. Between them, the retention shrinks to the late window."""
_LOOK_S = 1.0
_PROBE_BYTES = 64 << 10
"""Bytes of the trial write, about as many as a real request."""


class Upkeep:
    """Deletes old rows, enforces the disk budget, and frees unused objects, on one event loop.

    ``keep``: traces whose spans are needed. Rounds run in short steps with equal pauses.
    """

    def __init__(
        self, store: Store, timing: Timing, telemetry: Telemetry, keep: Callable[[], Collection[bytes]]
    ) -> None:
        self._store, self._timing, self._telemetry, self._keep = store, timing, telemetry, keep
        self._round: asyncio.Task[None] | None = None
        self._stopping = False

    def kept_for(self) -> float:
        """Return the retention in seconds, which shrinks as the disk budget runs out."""
        fill = self._store.size_bytes() / self._store.max_bytes
        spare = (_FULL - fill) / (_FULL - _CROWDED)
        return max(self._timing.late_window, self._timing.retention * min(1.0, max(0.0, spare)))

    def begin(self) -> None:
        """Start a round unless one runs."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self.run(), name="pandaeval-upkeep")

    def resume(self) -> None:
        """Start a round if a deletion is incomplete."""
        if self._store.deletions.pending():
            self.begin()

    async def stop(self) -> None:
        self._stopping = True
        if self._round is not None:
            await self._round

    async def run(self) -> None:
        """Run a round; a later round repeats failed deletions."""
        await self._complete_deletions()
        try:
            timing = self._timing
            # Each kind continues alone: another kind may not end while traces are decided faster than compressed.
            has_more = True
            while has_more and not self._stopping:
                compressed, now = 0, self._store.clock.calendar()
                # Not if the disk budget has room only for the late window.
                if timing.keeps_content and self.kept_for() > timing.late_window:
                    keeping = asyncio.to_thread(self._store.kept.keep, timing.late_window, now, self._keep(), _KEEP)
                    compressed = await self._paced(keeping)
                most = int(_MOST_KEPT * self._store.max_bytes)
                kept = await asyncio.wrap_future(self._store.kept.forget(self.kept_for(), most, now, limit=_FORGET))
                work = self._store.forget(
                    timing.late_window,
                    self.kept_for(),
                    self._store.clock.calendar(),
                    self._keep(),
                    limit=_FORGET,
                    judged_s=timing.judged,
                    unlisted_only=timing.keeps_content,  # keeps chunks that come due after the compression
                )
                forgotten = await self._paced(asyncio.wrap_future(work))
                has_more = _FORGET in (kept, forgotten) or compressed > 0
            await asyncio.to_thread(self._store.checkpoint)
            collect_recent()
        except Exception as error:  # noqa: BLE001 - the next round repeats the work
            _log.error("the store could not be tidied up (%s)", error, exc_info=not isinstance(error, sqlite3.Error))
            self._telemetry.add("pandaeval.store.errors", "upkeep")

    async def _complete_deletions(self) -> None:
        try:
            await asyncio.to_thread(complete, self._store.deletions, self._store.path, lambda: self._stopping)
        except (OSError, sqlite3.Error, RuntimeError) as error:
            _log.error("a deletion is not complete (%s); the next round continues it", error)
            self._telemetry.add("pandaeval.store.errors", "upkeep")

    async def _paced(self, step: Awaitable[int]) -> int:
        began = time.monotonic()
        done = await step
        if not self._stopping:
            await asyncio.sleep(time.monotonic() - began)
        return done


async def probe(store: Store) -> None:
    """Write about as many bytes as a request does. Raises the store's error."""
    await asyncio.wrap_future(store.put("probe", "." * _PROBE_BYTES))
    await asyncio.wrap_future(store.put("probe", ""))


class Guard:
    """Checks each second that the store is writable, and tries a small write after a failure. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry

    @property
    def trouble(self) -> str:
        return f"the store cannot be written to: {self._store.failing}" if self._store.failing else ""

    def start(self) -> Every:
        return Every(_LOOK_S, self._look, "pandaeval-guard", grace=0.0)

    async def _look(self) -> None:
        if not self._store.failing:
            return
        try:
            await probe(self._store)
        except sqlite3.Error:
            self._telemetry.add("pandaeval.store.errors", "probe")
        else:
            _log.info("the store can be written to again")
