"""Takes in the members that other collectors hand over, and hands over the ends of sessions that others score."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.deciding import Committer
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line_processes import DecidesTraces
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.store import Consumed, Store
from pandaeval_otel._proto.member_pb2 import Member
from pandaeval_otel.wire.labels import MOST_ID

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemberMessage:
    """A message about a trace that another collector decided, or about the end of a session. ``body``: packed, for the
    line to read; ``ends``: it says that the session is over; ``is_done``: an owner before this one has scored the
    session for good, as far as it had come."""

    body: bytes
    session_id: str
    ends: bool = False
    is_done: bool = False

    @classmethod
    def read(cls, body: bytes) -> MemberMessage:
        """Reads what the front has to know of a message. Raises ``ValueError`` for what no collector has sent."""
        try:
            member = Member.FromString(body)
        except DecodeError as error:
            raise ValueError(f"not a protobuf Member: {error}") from error
        if not member.session_id:
            raise ValueError("it names no session")
        if len(member.session_id) > MOST_ID:
            raise ValueError(f"its session id has more than {MOST_ID} characters")
        if not member.session_end and len(member.trace_id) != 16:
            raise ValueError("its trace id has not 16 bytes")
        return cls(body, member.session_id, member.session_end)


class Adopting:
    """Takes in members and ends of sessions; calls ``end_session`` with each that is over. On one event loop."""

    def __init__(
        self,
        store: Store,
        line: DecidesTraces,
        committer: Committer,
        telemetry: Telemetry,
        end_session: Callable[[str], None],
    ) -> None:
        self._store, self._line, self._committer = store, line, committer
        self._telemetry, self._end_session = telemetry, end_session

    async def adopt(self, members: Sequence[MemberMessage], read: Sequence[Consumed]) -> None:
        """Stores members and how far the topic was read that they came from; returns after the commit. Raises a
        ``Refusal``."""
        if self._committer.stopping:
            raise Draining("the collector is shutting down")
        if self._store.failing:
            raise Overloaded("the store cannot be written to just now")
        handed = [message for message in members if not message.ends]
        ended = list(dict.fromkeys(message.session_id for message in members if message.ends))

        async def decide(some: Sequence[MemberMessage | None]) -> Decision:
            messages = [(each.body, each.is_done) for each in some if each is not None]
            decision = await self._line.decide("adopt", messages)
            if None in some:
                decision.changes.endings.extend(ended)
                decision.changes.read.extend(read)
            return decision

        # One that cannot be made a member must not keep the others, nor the ends and what was read (``None``), from it.
        lost = await self._committer.together([*handed, None], decide, self._failed) if members or read else ()
        self._telemetry.add("pandaeval.members", "taken", len(members) - len(lost))
        for session_id in ended:
            self._end_session(session_id)

    def _failed(self, message: MemberMessage | None, error: Exception) -> None:
        if message is None:
            raise error
        _log.error("a trace cannot be made a member of session %s", message.session_id, exc_info=error)
        self._telemetry.add("pandaeval.members", "rejected", 1, "failed")

    def end_elsewhere(self, session_id: str) -> None:
        """Tells whoever scores a session that the application ended it."""

        async def tell() -> None:
            await self._committer.commit(lambda: self._line.decide("end_elsewhere", session_id))
            # After the commit: where a crash comes in between, the end is told once more.
            await self._committer.patiently(lambda: asyncio.wrap_future(self._store.forget_endings([session_id])))

        self._committer.begin(self._committer.or_left(tell(), "the end of a session"))
