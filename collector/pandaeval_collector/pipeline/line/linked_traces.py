"""Traces with their links to other traces: session id, responses, services and span links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pandaeval_collector.pipeline.line.facts import links_of, services_of
from pandaeval_collector.pipeline.line.members import Member, from_row
from pandaeval_collector.store import SessionTraceRow
from pandaeval_otel.model import Trace

Order = tuple[int, str]


@dataclass(slots=True)
class LinkedTrace:
    """A trace with its links. ``named``: the session in its spans, or that of its services. ``session``: its actual
    session. ``row``: stored data of an earlier trace. ``services``, ``links``: as in :class:`TraceFacts`.
    """

    trace_id: str
    start_ns: int
    named: str | None
    continues: str
    responses: tuple[str, ...]
    services: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    session: str | None = None
    row: SessionTraceRow | None = None

    @classmethod
    def of(cls, trace: Trace) -> LinkedTrace:
        services, links = services_of(trace), links_of(trace)
        return cls(trace.trace_id, trace.start_ns, trace.session_id, trace.continues, trace.responses, services, links)

    @classmethod
    def decided(cls, member: Member, named: str | None) -> LinkedTrace:
        facts = member.facts
        links = facts.all_services, facts.links
        return cls(member.trace_id, member.start_ns, named, facts.continues, facts.responses, *links)

    @classmethod
    def stored(cls, row: SessionTraceRow, renamed: Mapping[str, str]) -> LinkedTrace:
        """Read a trace from its row. ``renamed``: new ids of stored sessions."""
        member, session = from_row(row), renamed.get(row.session_id, row.session_id) or None
        turn = cls.decided(member, None if member.facts.chained else session)
        turn.session, turn.row = session, row
        return turn

    @property
    def order(self) -> Order:
        return self.start_ns, self.trace_id

    @property
    def linked(self) -> bool:
        return bool(self.responses or self.continues)

    def differs(self, older: LinkedTrace | None) -> bool:
        """Return whether anything changed that affects sessions."""
        if older is None:
            return True
        before = older.order, older.named, older.continues, older.responses
        return before != (self.order, self.named, self.continues, self.responses)
