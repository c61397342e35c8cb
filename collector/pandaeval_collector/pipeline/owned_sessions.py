"""Scores a pipeline's sessions, and adds members from other collectors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.deciding import Committer
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line_processes import LineProcesses
from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.store import Consumed, Store, WriteSet
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)


class OwnedSessions:
    """Scores a store's sessions, on one event loop."""

    def __init__(
        self,
        store: Store,
        line: LineProcesses,
        timing: Timing,
        committer: Committer,
        telemetry: Telemetry,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._line, self._committer = store, line, committer
        self._telemetry, self._clock = telemetry, clock
        self.open = OpenSessions(timing, store.jobs.pending_in)
        """Sessions without final scores, including those being scored."""

    async def let_go(self, session_ids: Collection[str]) -> None:
        """Forget sessions that another collector continues. Running scores are finished."""
        ids = [id_ for sent in session_ids for id_ in self._sharing(sent)]
        for session_id in ids:
            self.open.forget(session_id)
        if ids:
            await self._committer.commit(partial(_closed, ids))

    def is_open(self, sent: str) -> bool:
        return any(session_id in self.open for session_id in self._sharing(sent))

    def _sharing(self, sent: str) -> list[str]:
        return [sent, *self._store.reads.sharing(sent)]

    def resume(self) -> int:
        """Load open sessions; return their number. Any thread, before all else."""
        now = self._clock()
        for session_id in self._store.reads.open_sessions():
            self.open.touch(session_id, now)
        for session_id in self._store.reads.uncompared():
            self.open.grew(session_id, 0)
        return len(self.open)

    def end(self, session_id: str) -> None:
        """End a session for each service that uses its id."""
        self.open.end(session_id, self._clock())
        for id_ in self._store.reads.sharing(session_id):
            if id_ in self.open:
                self.open.end(id_, self._clock())

    def end_elsewhere(self, session_id: str) -> None:
        async def tell() -> None:
            await self._committer.commit(lambda: self._line.decide("end_elsewhere", session_id))
            # After the commit: if a crash comes first, the end is reported again.
            await self._committer.patiently(lambda: asyncio.wrap_future(self._store.forget_endings([session_id])))

        self._committer.begin(self._committer.or_left(tell(), "the end of a session"))

    async def adopt(self, members: Sequence[MemberMessage], read: Sequence[Consumed]) -> None:
        """Store members and their topic offset ``read``; return after the commit. Raises a ``Refusal``."""
        if self._committer.stopping:
            raise Draining("the collector is shutting down")
        if self._store.failing:
            raise Overloaded("the store is not writable now")
        handed = [message for message in members if not message.ends]
        ended = list(dict.fromkeys(message.session_id for message in members if message.ends))

        async def decide(some: Sequence[MemberMessage | None]) -> Decision:
            messages = [(each.body, each.is_done) for each in some if each is not None]
            decision = await self._line.decide("adopt", messages)
            if None in some:
                decision.changes.endings.extend(ended)
                decision.changes.read.extend(read)
            return decision

        # An unusable member must not stop the other members, the ends or the offset (``None``).
        lost = await self._committer.together([*handed, None], decide, self._not_adopted) if members or read else ()
        self._telemetry.add("pandaeval.members", "taken", len(members) - len(lost))
        for session_id in ended:
            self.end(session_id)

    def _not_adopted(self, message: MemberMessage | None, error: Exception) -> None:
        if message is None:
            raise error
        _log.error("a trace cannot be made a member of session %s", message.session_id, exc_info=error)
        self._telemetry.add("pandaeval.members", "rejected", 1, "failed")

    def committed(self, decision: Decision) -> None:
        now = self._clock()
        for session_id, start_ns in decision.grown.items():
            self.open.grew(session_id, start_ns)
        for session_id in decision.changes.touched:
            self.open.touch(session_id, now, goes_on=decision.has_runs or session_id in decision.grown)

    async def compare_due(self) -> None:
        """Compare members from other collectors; failing sessions stay uncompared."""
        while not self._committer.stopping and (grown := self.open.take_uncompared()):
            failed = partial(self._failed, "compared")
            await self._committer.together([*grown], partial(self._compare, grown), failed)

    async def close_due(self, now: float) -> None:
        """Close ended, judged sessions, and provisionally score quiet sessions."""
        over, quiet = self.open.take_due(now)
        if over:
            await self._close(over)
        if quiet:
            failed = partial(self._failed, "scored as far as it has come")
            await self._committer.together(
                quiet, lambda ids: self._line.decide("score_so_far", self.open.compared(ids)), failed
            )

    async def close_all(self, trigger: Trigger) -> None:
        await self.compare_due()
        await self._close(self.open.take_all(trigger))

    def _failed(self, what: str, _: str, error: Exception) -> None:
        _log.error("a session could not be %s", what, exc_info=error)
        self._telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)

    # The decision itself reads the members, because members can arrive until then.

    async def _compare(self, grown: Mapping[str, int], session_ids: Sequence[str]) -> Decision:
        return await self._line.decide("compare", {id_: grown[id_] for id_ in session_ids})

    async def _close(self, sessions: Mapping[str, Trigger]) -> None:
        closed: set[str] = set()

        async def decide(session_ids: Sequence[str]) -> Decision:
            over = {id_: sessions[id_] for id_ in self.open.compared(session_ids)}
            decision = await self._line.decide("close_sessions", over)
            closed.update(decision.changes.closed)
            return decision

        try:
            if failed := await self._committer.together([*sessions], decide, partial(self._failed, "scored")):
                await self._committer.commit(partial(_closed, failed))  # no endless retries
                closed.update(failed)
        finally:
            self.open.closed(sessions)
        ended = {session_id for session_id, trigger in sessions.items() if trigger is Trigger.EXPLICIT}
        for session_id in ended - closed:
            self.end(session_id)
        if ended_ids := sorted(ended & closed):
            # After the commit: if a crash comes first, the session closes again, with the same results.
            await self._committer.patiently(lambda: asyncio.wrap_future(self._store.forget_endings(ended_ids)))


async def _closed(session_ids: Collection[str]) -> Decision:
    return Decision(WriteSet(closed=set(session_ids)))
