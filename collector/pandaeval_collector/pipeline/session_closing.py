"""The open sessions of a running pipeline: their scores so far, when each is over, and its scores for good."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.deciding import Committer
from pandaeval_collector.pipeline.decision import Decision, GrownSession
from pandaeval_collector.pipeline.interims import Interims
from pandaeval_collector.pipeline.judge_wait import Awaited
from pandaeval_collector.pipeline.line_processes import DecidesTraces
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.store import Store, WriteSet
from pandaeval_otel.assembly import SessionAssembler
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)
_COMPARED_AT_ONCE = 64


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
        self._sessions = SessionAssembler(timing.session_idle, timing.session_max_age)
        self._interims = Interims(timing.session_interim)
        self._awaited = Awaited(store.jobs.pending_in, timing.judge_wait)
        self._closing: Counter[str] = Counter()
        self._uncompared: dict[str, GrownSession] = {}

    @property
    def open(self) -> int:
        """The number of sessions that are not scored for good yet, those being scored included."""
        return len(self._sessions) + len(self._awaited) + len(+self._closing)

    def is_open(self, session_id: str) -> bool:
        """Returns whether this session is not scored for good yet."""
        return session_id in self._sessions or session_id in self._awaited or self._closing[session_id] > 0

    async def let_go(self, session_ids: Collection[str]) -> None:
        """Forgets sessions that another collector scores from now on. Those that are being scored are finished."""
        for session_id in session_ids:
            self._sessions.forget(session_id)
            self._interims.forget(session_id)
            self._awaited.goes_on(session_id)
            self._uncompared.pop(session_id, None)
        if session_ids:
            await self._committer.commit(partial(_closed, session_ids))

    def resume(self) -> int:
        """Takes up the sessions that the store holds as open. Returns how many are open. On any thread, before all else."""
        now = self._clock()
        for session_id in self._store.reads.open_sessions():
            self._touch(session_id, now)
        self._uncompared = {id_: GrownSession(whole=True) for id_ in self._store.reads.uncompared()}
        return len(self._sessions)

    def end(self, session_id: str) -> None:
        """Ends a session because its application says that it is over."""
        self._sessions.end(session_id, self._clock())

    def committed(self, decision: Decision) -> None:
        """Notes that a decision about traces or judgements of sessions was committed: these sessions go on."""
        now = self._clock()
        for session_id, grown in decision.grown.items():
            known = self._uncompared.get(session_id)
            self._uncompared[session_id] = grown if known is None else known.merged(grown)
        for session_id in decision.changes.touched:
            if decision.has_runs or session_id in decision.grown:
                self._awaited.goes_on(session_id)
            if session_id not in self._awaited:
                self._touch(session_id, now)

    async def compare_due(self) -> None:
        """Compares what other collectors handed over since the last time."""
        while self._uncompared and not self._committer.stopping:
            some = {id_: self._uncompared.pop(id_) for id_ in list(self._uncompared)[:_COMPARED_AT_ONCE]}
            await self._compare(some)

    async def _compare(self, some: dict[str, GrownSession]) -> None:
        """Compares members of sessions. A session that raises is logged and scored without comparisons."""
        try:
            await self._committer.commit(lambda: self._line.decide("compare", some))
        except Exception as error:  # whatever one session raises, it must not cost the others
            if self._committer.stopping:
                raise
            if len(some) > 1:
                for session_id, grown in some.items():
                    await self._compare({session_id: grown})
                return
            _log.exception("the answers of a session could not be compared")
            self._telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)

    async def close_due(self, now: float) -> None:
        """Closes the sessions that are over at ``now``, once their judges have answered."""
        over = self._sessions.take_due(now)
        for session in over:
            self._interims.forget(session.session_id)
        sessions = self._awaited.ready(over, now)
        if sessions:
            await self._close({session.session_id: session.trigger for session in sessions})

    async def score_so_far(self, now: float) -> None:
        """Scores open sessions that have been quiet for a while at ``now``."""
        if due := self._interims.take_due(now):
            await self._score_so_far(due)

    async def close_all(self, trigger: Trigger) -> None:
        """Closes every open session now."""
        await self.compare_due()
        open_sessions = [*self._sessions.take_all(trigger), *self._awaited.take_all(trigger)]
        await self._close({session.session_id: trigger for session in open_sessions})

    def _compared(self, session_ids: Iterable[str]) -> list[str]:
        """Leaves out sessions with a member that came after they were last compared: by its signals they would be
        scored under the id of the same session with the comparison. They are due again, as the member has touched them.
        Called when a decision is made, since members come until then."""
        return sorted(id_ for id_ in session_ids if id_ not in self._uncompared)

    def _touch(self, session_id: str, now: float) -> None:
        self._sessions.touch(session_id, now)
        self._interims.touch(session_id, now)

    async def _score_so_far(self, sessions: Sequence[str]) -> None:
        """Scores open sessions. One that raises is logged and left out: its scores for good do not rest on these."""
        try:
            await self._committer.commit(lambda: self._line.decide("score_so_far", self._compared(sessions)))
        except Exception as error:  # whatever one session raises, it must not cost the others
            if self._committer.stopping:
                raise
            if len(sessions) > 1:
                for session_id in sessions:
                    await self._score_so_far([session_id])
                return
            _log.exception("an open session could not be scored as far as it has come")
            self._telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)

    async def _close(self, sessions: dict[str, Trigger]) -> None:
        self._closing.update(sessions.keys())
        closed: set[str] = set()

        async def decide() -> Decision:
            over = {session_id: sessions[session_id] for session_id in self._compared(sessions)}
            decision = await self._line.decide("close_sessions", over)
            closed.update(decision.changes.closed)
            return decision

        try:
            await self._committer.commit(decide)
        except Exception as error:  # whatever one session raises, it must not cost the others, nor be tried forever
            if self._committer.stopping:
                raise
            if len(sessions) > 1:
                for session_id, trigger in sessions.items():
                    await self._close({session_id: trigger})
                return
            _log.exception("a session could not be scored")
            closed.update(sessions)
            await self._committer.commit(partial(_closed, sessions))
            self._telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)
        finally:
            self._closing.subtract(sessions.keys())
            self._closing = +self._closing
        ended = {session_id for session_id, trigger in sessions.items() if trigger is Trigger.EXPLICIT}
        for session_id in ended - closed:
            self.end(session_id)
        if told := sorted(ended & closed):
            # After the commit: where a crash comes in between, the session is closed once more, with the same results.
            await self._committer.patiently(lambda: asyncio.wrap_future(self._store.forget_endings(told)))


async def _closed(session_ids: Iterable[str]) -> Decision:
    return Decision(WriteSet(closed=set(session_ids)))
