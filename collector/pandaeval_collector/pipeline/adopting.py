"""Takes in the members that other collectors hand over, and hands over the ends of sessions that others score."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.commits import Committer
from pandaeval_collector.pipeline.line.decision import Decision
from pandaeval_collector.pipeline.line.handed import Ended, Handed
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.retries import Retries
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.store import Consumed, Store

_log = logging.getLogger(__name__)


class Adopting:
    """Takes in members and ends of sessions; calls ``end_session`` with each that is over. On one event loop."""

    def __init__(
        self,
        store: Store,
        line: Line,
        committer: Committer,
        retries: Retries,
        telemetry: Telemetry,
        end_session: Callable[[str], None],
    ) -> None:
        self._store, self._line, self._committer = store, line, committer
        self._retries, self._telemetry, self._end_session = retries, telemetry, end_session
        self._telling: set[asyncio.Task[None]] = set()

    async def adopt(self, members: Sequence[Handed | Ended], read: Sequence[Consumed]) -> None:
        """Stores members and how far the topic was read that they came from; returns after the commit. Raises a
        ``Refusal``."""
        if self._retries.stopping:
            raise Draining("the collector is shutting down")
        if self._store.failing:
            raise Overloaded("the store cannot be written to just now")
        handed = [each for each in members if isinstance(each, Handed)]
        ended = list(dict.fromkeys(each.session_id for each in members if isinstance(each, Ended)))
        lost = await self._commit(handed, ended, read) if members or read else 0
        self._telemetry.add("pandaeval.members", "taken", len(members) - lost)
        for session_id in ended:
            self._end_session(session_id)

    async def _commit(self, handed: Sequence[Handed], ended: Sequence[str], read: Sequence[Consumed]) -> int:
        """Commits members; returns how many are lost: one that cannot be made a member must not keep others from it."""

        def decide() -> Decision:
            decision = self._line.adopt(handed)
            decision.changes.endings.extend(ended)
            decision.changes.read.extend(read)
            return decision

        try:
            await self._committer.commit(decide)
        except Exception:  # whatever members hold that nobody thought of
            if self._retries.stopping or not handed:
                raise
            if len(handed) == 1:
                _log.exception("trace %s cannot be made a member of its session", handed[0].row.trace_id.hex())
                self._telemetry.add("pandaeval.members", "rejected", 1, "failed")
                return 1 + await self._commit([], ended, read)
            lost = sum([await self._commit([each], (), ()) for each in handed])
            return lost + await self._commit([], ended, read)
        return 0

    def end_elsewhere(self, session_id: str) -> None:
        """Tells whoever scores a session that the application ended it."""
        task = asyncio.get_running_loop().create_task(self._tell_end(session_id))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def finish(self) -> None:
        """Waits until all ends of sessions are told, see :meth:`end_elsewhere`."""
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _tell_end(self, session_id: str) -> None:
        async def tell() -> None:
            await self._committer.commit(lambda: self._line.end_elsewhere(session_id))
            # After the commit: where a crash comes in between, the end is told once more.
            await self._retries(lambda: asyncio.wrap_future(self._store.forget_endings([session_id])))

        await self._retries.or_left(tell(), "the end of a session")
