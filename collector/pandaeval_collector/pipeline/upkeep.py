"""Deletes old rows of a running collector: raw spans after the late window, everything else after the retention. The
spans of agents' traces stay readable for longer, compressed. Objects in memory that nobody needs go, too.

That may take a while (a day of results, when the retention is made shorter). Nothing waits for it: it runs beside the
decisions, in short steps, and pauses after each step for as long as the step took, so that requests can be committed in
between.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection

from pandaeval_collector.base.runtime.garbage import collect_recent
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)

_FORGET = 500
"""Rows of a kind that go in one step. Senders wait while it lasts: some 40 ms where pages are given back, too."""
_KEEP = 100
"""Traces that are compressed in one step."""
_MOST_KEPT = 0.25
"""The part of the disk budget that kept spans take at most, whatever ``keep_bytes`` says."""
_CROWDED, _FULL = 0.7, 0.9
"""Parts of the disk budget between which the retention goes down to nothing but the late window."""


class Upkeep:
    """Deletes old rows of one store and keeps it within its disk budget; times in seconds. ``keep``: traces whose spans
    are still needed; ``judged``: how long judged scores are kept for labels; ``keep_bytes``: how much the spans of
    older traces may take, 0: they are deleted. One event loop."""

    def __init__(
        self,
        store: Store,
        late_window: float,
        retention: float,
        telemetry: Telemetry,
        keep: Callable[[], Collection[bytes]],
        judged: float = 30 * 86_400.0,
        keep_bytes: int = 0,
    ) -> None:
        self._store, self._telemetry, self._keep, self._keep_bytes = store, telemetry, keep, keep_bytes
        self._late_window, self._retention, self._judged = late_window, retention, judged
        self._round: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def is_at_work(self) -> bool:
        """Whether a round is under way."""
        return self._round is not None and not self._round.done()

    def kept_for(self) -> float:
        """Returns for how many seconds results are kept: the configured retention, and less while the disk budget runs
        out, since old results are deleted before new spans are refused."""
        fill = self._store.size_bytes() / self._store.max_bytes
        spare = (_FULL - fill) / (_FULL - _CROWDED)
        return max(self._late_window, self._retention * min(1.0, max(0.0, spare)))

    def begin(self) -> None:
        """Starts a round of deleting unless one runs."""
        if not self.is_at_work:
            self._round = asyncio.create_task(self.run(), name="pandaeval-upkeep")

    async def stop(self) -> None:
        """Returns when the running step has ended; the round is not finished."""
        self._stopping = True
        if self._round is not None:
            await self._round

    async def run(self) -> None:
        """Runs one round. Rows that cannot be deleted just now are deleted in a later round."""
        try:
            # None of the kinds waits for another to end: it may not, while traces are decided faster than compressed.
            has_more = True
            while has_more and not self._stopping:
                compressed, now = 0, self._store.clock.calendar()
                # Not where the disk budget has room for the late window alone.
                if self._keep_bytes > 0 and self.kept_for() > self._late_window:
                    compressed = await self._paced(
                        asyncio.to_thread(self._store.kept.keep, self._late_window, now, self._keep(), _KEEP)
                    )
                most = min(self._keep_bytes, int(_MOST_KEPT * self._store.max_bytes))
                kept = await asyncio.wrap_future(self._store.kept.forget(self.kept_for(), most, now, limit=_FORGET))
                has_more = _FORGET in (kept, await self._forget()) or compressed > 0
            await asyncio.to_thread(self._store.checkpoint)
            collect_recent()
        except Exception as error:  # noqa: BLE001 - the next round finds the same, and may get on
            _log.error("the store could not be tidied up (%s)", error, exc_info=not isinstance(error, sqlite3.Error))
            self._telemetry.add("pandaeval.store.errors", "upkeep")

    async def _forget(self) -> int:
        work = self._store.forget(
            self._late_window,
            self.kept_for(),
            self._store.clock.calendar(),
            self._keep(),
            limit=_FORGET,
            judged_s=self._judged,
            unlisted_only=self._keep_bytes > 0,  # else what comes due after the compressing would be deleted
        )
        return await self._paced(asyncio.wrap_future(work))

    async def _paced(self, step: Awaitable[int]) -> int:
        """Awaits a step, and pauses for as long as it took."""
        began = time.monotonic()
        done = await step
        if not self._stopping:
            await asyncio.sleep(time.monotonic() - began)
        return done
