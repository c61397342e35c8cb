"""The open sessions of a running pipeline: compares what came into them, scores them so far and for good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.deciding import Committer
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line_processes import DecidesTraces
from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.store import Store, WriteSet
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)


class SessionCloser:
    """Closes the sessions of one store. On one event loop."""

    def __init__(
        self,
        store: Store,
        line: DecidesTraces,
        timing: Timing,
        committer: Committer,
        telemetry: Telemetry,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._line, self._committer = store, line, committer
        self._telemetry, self._clock = telemetry, clock
        self.sessions = OpenSessions(timing, store.jobs.pending_in)
        """Those that are not scored for good yet, the ones being scored included."""

    async def let_go(self, session_ids: Collection[str]) -> None:
        """Forgets sessions that another collector scores from now on. Those that are being scored are finished."""
        for session_id in session_ids:
            self.sessions.forget(session_id)
        if session_ids:
            await self._committer.commit(partial(_closed, session_ids))

    def resume(self) -> int:
        """Takes up the sessions that the store holds as open; returns how many. On any thread, before all else."""
        now = self._clock()
        for session_id in self._store.reads.open_sessions():
            self.sessions.touch(session_id, now)
        for session_id in self._store.reads.uncompared():
            self.sessions.grew(session_id, 0)
        return len(self.sessions)

    def end(self, session_id: str) -> None:
        """Ends a session because its application says that it is over."""
        self.sessions.end(session_id, self._clock())

    def committed(self, decision: Decision) -> None:
        """Notes that a decision about traces or judgements of sessions was committed: these sessions go on."""
        now = self._clock()
        for session_id, start_ns in decision.grown.items():
            self.sessions.grew(session_id, start_ns)
        for session_id in decision.changes.touched:
            self.sessions.touch(session_id, now, goes_on=decision.has_runs or session_id in decision.grown)

    async def compare_due(self) -> None:
        """Compares what other collectors handed over since the last time. A session that raises is scored without."""
        while not self._committer.stopping and (grown := self.sessions.take_uncompared()):
            failed = partial(self._failed, "compared")
            await self._committer.together([*grown], partial(self._compare, grown), failed)

    async def close_due(self, now: float) -> None:
        """Closes the sessions that are over at ``now``, once their judges have answered, and scores open ones that have
        been quiet for a while. One that raises is not scored so far: its scores for good do not rest on these."""
        over, quiet = self.sessions.take_due(now)
        if over:
            await self._close(over)
        if quiet:
            failed = partial(self._failed, "scored as far as it has come")
            await self._committer.together(quiet, self._score_so_far, failed)

    async def close_all(self, trigger: Trigger) -> None:
        """Closes every open session now."""
        await self.compare_due()
        await self._close(self.sessions.take_all(trigger))

    def _failed(self, what: str, _: str, error: Exception) -> None:
        _log.error("a session could not be %s", what, exc_info=error)
        self._telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)

    # What a session is decided by is looked up when the decision is made, since members come until then.

    async def _compare(self, grown: Mapping[str, int], session_ids: Sequence[str]) -> Decision:
        return await self._line.decide("compare", {id_: grown[id_] for id_ in session_ids})

    async def _score_so_far(self, session_ids: Sequence[str]) -> Decision:
        return await self._line.decide("score_so_far", self.sessions.compared(session_ids))

    async def _close(self, sessions: Mapping[str, Trigger]) -> None:
        closed: set[str] = set()

        async def decide(session_ids: Sequence[str]) -> Decision:
            over = {id_: sessions[id_] for id_ in self.sessions.compared(session_ids)}
            decision = await self._line.decide("close_sessions", over)
            closed.update(decision.changes.closed)
            return decision

        try:
            if failed := await self._committer.together([*sessions], decide, partial(self._failed, "scored")):
                await self._committer.commit(partial(_closed, failed))  # nor is it tried forever
                closed.update(failed)
        finally:
            self.sessions.closed(sessions)
        ended = {session_id for session_id, trigger in sessions.items() if trigger is Trigger.EXPLICIT}
        for session_id in ended - closed:
            self.end(session_id)
        if told := sorted(ended & closed):
            # After the commit: where a crash comes in between, the session is closed once more, with the same results.
            await self._committer.patiently(lambda: asyncio.wrap_future(self._store.forget_endings(told)))


async def _closed(session_ids: Collection[str]) -> Decision:
    return Decision(WriteSet(closed=set(session_ids)))
