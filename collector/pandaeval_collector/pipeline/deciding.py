"""Decides due traces: has batches of them understood ahead of time, decides and commits the batches in order, and
decides a batch trace by trace when one of its traces raises."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.commits import Committer
from pandaeval_collector.pipeline.line.decision import Decision
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Ready
from pandaeval_collector.pipeline.lookahead import Ahead, DueBatch
from pandaeval_collector.pipeline.retries import Retries
from pandaeval_collector.pipeline.suspects import SuspectCheck
from pandaeval_collector.pipeline.underway import HOPELESS, TOGETHER, UnderWay
from pandaeval_otel.assembly import DueTrace

_log = logging.getLogger(__name__)

_BATCH = 256
"""Filing many traces of a session at once takes less than one by one; all of a batch is in memory."""


class TraceDecider:
    """Decides the due traces of one pipeline. On one event loop."""

    def __init__(
        self,
        line: Line,
        committer: Committer,
        trial: SuspectCheck,
        under_way: UnderWay,
        retries: Retries,
        telemetry: Telemetry,
        on_decided: Callable[[DueTrace], None],
    ) -> None:
        """``trial`` understands traces, ``under_way`` notes those that are being decided; ``on_decided`` is called for
        each trace after its commit."""
        self._line, self._committer, self._trial, self._under_way = line, committer, trial, under_way
        self._retries, self._telemetry, self._on_decided = retries, telemetry, on_decided
        self._ahead = Ahead(trial, retries, under_way)
        self._held: list[DueTrace] = []
        """Suspects that are due, each to be decided alone."""

    async def step(self, take: Callable[[int], Sequence[DueTrace]]) -> int:
        """Has the traces that ``take`` hands out (at most as many as it is given) understood as far ahead as there is
        room, and decides the oldest batch. Returns how many traces that batch had; 0 where none is due."""
        self._ahead.fill(partial(self._taken, take))
        batch = self._ahead.next()
        if batch is not None:
            await self._begin(batch)
            return len(batch.due)
        if self._held:
            await self._next_alone()
            return 1
        return 0

    def stop(self) -> None:
        """Stops waiting for worker processes that may never answer."""
        self._ahead.stop()

    async def drop(self) -> None:
        """Forgets the batches that are being understood; their traces stay in the store."""
        await self._ahead.drop()

    async def close(self) -> None:
        """Ends the process for suspects and closes the notes."""
        await self._trial.close()
        self._under_way.close()

    def _taken(self, take: Callable[[int], Sequence[DueTrace]]) -> Sequence[DueTrace]:
        """Returns the due traces to be understood next. Suspects that have to be decided alone are held back, and while
        any is held nothing else is begun."""
        if self._held:
            return ()
        due = take(_BATCH)
        deaths = self._under_way.deaths
        self._held = sorted(
            (each for each in due if deaths(each.trace_id) >= TOGETHER), key=lambda d: deaths(d.trace_id)
        )
        return [each for each in due if deaths(each.trace_id) < TOGETHER] if self._held else due

    async def _next_alone(self) -> None:
        """Decides the held suspect that the fewest processes died over, with no other trace being decided meanwhile."""
        due = self._held.pop(0)
        if self._under_way.deaths(due.trace_id) >= HOPELESS:
            why = "the collector ended each time while it was being decided"
            await self._retries.or_left(self._set_aside(due, "process_ended", why), "a trace")
        else:
            await self._begin(self._ahead.begin([due]))

    async def _begin(self, batch: DueBatch) -> None:
        """Decides a batch and returns after its commit. The caller takes the next batch then: traces that become due
        meanwhile are in that one, and do not wait for one more."""
        await self._retries.or_left(self._decide(batch), f"{len(batch.due)} traces")

    async def _decide(self, batch: DueBatch) -> None:
        done = False
        try:
            await self._decide_or_give_up(batch)
            done = True
        finally:
            self._under_way.end([each.trace_id for each in batch.due], done)
            await self._trial.rest()

    async def _decide_or_give_up(self, batch: DueBatch) -> None:
        failpoints.reach("before_decide")
        due = batch.due
        try:
            understood = await batch.ready
            await self._committer.commit(partial(self._filed, due, understood))
        except Exception as error:  # whatever one trace raises, it must not cost the others, nor be tried forever
            if self._retries.stopping:
                raise
            if len(due) > 1:
                for each in due:
                    await self._decide_or_give_up(self._ahead.begin([each]))
                return
            _log.exception("trace %s could not be decided", due[0].trace_id.hex())
            kind = error.kind if isinstance(error, NotUnderstoodError) else type(error).__name__
            await self._set_aside(due[0], kind, str(error).partition("\n")[0])
            return
        self._decided(due)

    def _filed(self, due: Sequence[DueTrace], understood: Ready) -> Decision:
        with self._under_way.at([each.trace_id for each in due]):
            return self._line.file(due, understood())

    async def _set_aside(self, due: DueTrace, kind: str, why: str) -> None:
        """Gives a trace the results of one that cannot be read; its spans stay in the store as long as results do."""
        await self._committer.commit(lambda: self._line.set_aside(due, kind, why))
        self._under_way.end([due.trace_id])
        self._decided([due])

    def _decided(self, due: Sequence[DueTrace]) -> None:
        for each in due:
            self._on_decided(each)
        for trigger, number in Counter(each.trigger.value for each in due).items():
            self._telemetry.add("pandaeval.traces", "decided", number, trigger)
        self._telemetry.add("pandaeval.items", "decided", sum(each.new_items for each in due))
