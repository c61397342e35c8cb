"""Finds the sessions of traces that name none where all traces are known beforehand; see
:mod:`pandaeval_collector.pipeline.line.implied_sessions`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandaeval_collector.pipeline.line.implied_sessions import Order, Places
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.session import is_history


@dataclass(frozen=True, slots=True)
class Link:
    """How a trace is linked with others. ``order``: by its start."""

    order: Order
    continues: str
    responses: tuple[str, ...]

    @classmethod
    def of(cls, trace: Trace) -> Link:
        return cls((trace.start_ns, trace.trace_id), trace.continues, trace.responses)


class Forward:
    """Implements :class:`pandaeval_collector.pipeline.line.implied_sessions.Chains` for input that is known whole, and
    traces that come in order of start. No trace is moved later.
    ``links``: of every trace that may continue another, or be continued."""

    def __init__(self, links: Iterable[Link]) -> None:
        known = [link for link in links if link.continues or link.responses]
        self._continuing: dict[str, list[Order]] = defaultdict(list)
        self._giving: dict[str, list[Order]] = defaultdict(list)
        for link in known:
            if link.continues:
                self._continuing[link.continues].append(link.order)
        for link in known:
            for id_ in link.responses:
                if is_history(id_) and id_ in self._continuing:
                    self._giving[id_].append(link.order)
        self._session_of: dict[str, str] = {}

    def place(self, runs: Sequence[Run]) -> Places:
        """See :class:`Chains`."""
        places = Places()
        for run in runs:
            member, named = run.member, run.unit.session_id
            if member.facts.linked:
                session = self.session(named, Link(member.order, member.facts.continues, member.facts.responses))
                if named is None and session is not None:
                    places.sessions[member.trace_id] = session
        return places

    def session(self, named: str | None, link: Link) -> str | None:
        """Returns the session of the next trace: ``named``, if it names one."""
        wanted = [id_ for id_ in link.responses if self._is_gone_on_from(id_, link.order)]
        before = link.continues if self._goes_on(link.continues, link.order) else ""
        follows = self._session_of.get(before, before) or (link.responses[-1] if wanted else None)
        session = follows if named is None else named
        for id_ in wanted:
            self._session_of.setdefault(id_, str(session))
        return session

    def _goes_on(self, id_: str, order: Order) -> bool:
        return not is_history(id_) or len([each for each in self._giving[id_] if each < order]) == 1

    def _is_gone_on_from(self, id_: str, order: Order) -> bool:
        if id_ not in self._continuing:
            return False
        if not is_history(id_):
            return True
        return min(self._giving[id_]) == order and any(
            each > order and self._goes_on(id_, each) for each in self._continuing[id_]
        )
