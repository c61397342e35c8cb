"""Runs due judge jobs of the store, several at a time."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.store import Job, StoreAccess

_log = logging.getLogger(__name__)

SLOTS = 4
"""Jobs at a time per call at a time: jobs of a trace wait for its first call, while others should go on."""
_TICK_S = 0.2


class Runner:
    """Runs a store's due jobs, up to ``slots`` at a time. One event loop."""

    def __init__(
        self,
        store: StoreAccess,
        attempts: Attempts,
        slots: int = 16,
        longest_wait: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """``attempts``: runs a job. ``longest_wait``: seconds, then a job ends without a call."""
        self._store, self._attempts, self._slots, self._longest_wait = store, attempts, slots, longest_wait
        self._running: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        """Jobs that have waited too long. A judge's limits do not hold them up."""
        self._suspects: list[Job] = []
        """Jobs that a judge's process died over, to be run alone."""
        self._ended: Callable[[], None] = lambda: None
        self._rounds: Every | None = None

    async def start(self) -> None:
        await self._take_over()
        self._rounds = Every(_TICK_S, self._round, "pandaeval-judge")

    async def stop(self) -> None:
        """Cancel running jobs; the next start repeats them."""
        if self._rounds is not None:
            await self._rounds.stop()
        await self._leave()

    async def drain(self, ended: Callable[[], None] = lambda: None) -> None:
        """Run jobs until none is left, due or not; calls ``ended`` after each. For files."""
        self._ended = ended
        await self._take_over()
        try:
            while True:
                started = await self._begin_due()
                if tasks := self._running | self._ending:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                elif not started and not self._suspects:
                    due = self._store.jobs.next_due()
                    if due is None:
                        return
                    await asyncio.sleep(max(0.01, due - self._store.clock.running()))
        finally:
            await self._leave()

    async def _leave(self) -> None:
        tasks = self._running | self._ending
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._attempts.close()

    async def _take_over(self) -> None:
        await asyncio.wrap_future(self._store.jobs.release_all())
        await asyncio.wrap_future(self._store.spending.settle_all())

    async def _round(self) -> None:
        await self._begin_due()

    async def _begin_due(self) -> int:
        """Start jobs up to the limit; returns the number leased.

        Jobs suspected of killing the judge's process run alone.
        """
        now = self._store.clock.running()
        too_old, free = now - self._longest_wait(), self._slots - len(self._ending)
        if free > 0 and too_old > 0:
            for job in await asyncio.wrap_future(self._store.jobs.lease_old(too_old, free)):
                self._begin(self._ending, job, too_old=True)
        room = self._attempts.pauses.room(now, self._slots)
        if not room:
            return 0
        if self._suspects:
            if not self._running:
                self._begin(self._running, self._suspects.pop())
            return 0
        free = room - len(self._running)
        if free <= 0:
            return 0
        jobs = await asyncio.wrap_future(self._store.jobs.lease(now, free))
        for job in jobs:
            if job.crashes:
                self._suspects.append(job)
            else:
                self._begin(self._running, job)
        return len(jobs)

    def _begin(self, tasks: set[asyncio.Task[None]], job: Job, too_old: bool = False) -> None:
        task = asyncio.create_task(self._attempts.run(job, too_old))
        tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("job %s could not be finished", job.id, exc_info=error)
            self._ended()

        task.add_done_callback(done)
