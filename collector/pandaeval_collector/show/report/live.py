"""The index of the live page: that of the report, made of rows of the store instead of traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pandaeval_collector.show.report.cures import listed_cure
from pandaeval_collector.show.report.index import Ranked, ReportOrigin, index
from pandaeval_collector.show.report.results import shown_object
from pandaeval_collector.show.report.rows import ReportSession, ReportTrace
from pandaeval_collector.store.failures import plain
from pandaeval_collector.store.finding import Listed, ListedSession
from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED


@dataclass(slots=True)
class LiveIndex:
    """Builds one index: call :meth:`unit`, :meth:`trace` or :meth:`session` in the order in which they are to be shown,
    then :meth:`made`."""

    _rows: list[ReportTrace] = field(default_factory=list)
    _sessions: dict[str, ReportSession] = field(default_factory=dict)
    _known: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _order: list[Ranked] = field(default_factory=list)
    _alike: dict[Hashable, int] = field(default_factory=dict)
    _same: Counter[int] = field(default_factory=Counter)

    def unit(self, unit: ListedSession, together: bool = False) -> None:
        """Adds a row of the list of sessions: a session with its worst trace, or a trace that belongs to none.
        ``together``: a row that failed as an earlier one did is only counted with that."""
        if together and unit.failed:
            place = self._alike.setdefault(_cause(unit), len(self._order))
            self._same[place] += 1
            if place < len(self._order):
                return
        worst = [] if unit.worst is None else [unit.worst]
        if unit.id is None:
            self._order += [Ranked(None, self._traces(worst, brief=True))]
        else:
            self.session(unit, worst)

    def __len__(self) -> int:
        """Returns how many rows there are."""
        return len(self._order)

    def trace(self, row: Listed, brief: bool = False) -> ReportTrace:
        """Adds a trace by itself and returns it; of its session only the id is known. ``brief``: for a list."""
        [made] = self._traces([row], brief)
        if row.session is not None and row.session not in self._sessions:
            self._sessions[row.session] = ReportSession(row.session)
        self._order.append(Ranked(None, [made]))
        return made

    def session(self, unit: ListedSession, rows: Sequence[Listed]) -> None:
        """Adds a session with some of its traces."""
        assert unit.id is not None
        session = self._sessions[unit.id] = ReportSession(unit.id)
        for said in unit.results.values():
            session.add(shown_object(said, unit.id))
        self._known[unit.id] = {
            "count": unit.traces,
            "failing": unit.failed_traces,
            "states": [_state(badness) for badness in unit.badness],
            "first": unit.first_ms,
            "last": unit.last_ms,
            "us": unit.us,
            "tokens": unit.tokens,
            "usd": unit.usd,
        }
        self._order.append(Ranked(session, self._traces(rows, brief=True)))

    def made(self, about: ReportOrigin, members: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
        """Returns the index; its sessions have the ``href`` part of their addresses, the number of their traces and,
        for those in ``members``, the ids of all."""
        for number, row in enumerate(self._rows):
            row.number = number
        there = {id(each.session) for each in self._order}  # the others are sessions of which only the id is known
        others = [Ranked(each) for each in self._sessions.values() if id(each) not in there]
        shown = index(self._rows, self._sessions, [*self._order, *others], (), about)
        del shown["order"][len(self._order) :]
        for place, times in self._same.items():
            shown["order"][place].append(times)
        for session_id, session in zip(self._sessions, shown["sessions"], strict=True):
            session |= {"href": quote(session_id, safe=""), **self._known.get(session_id, {})}
            if members and session_id in members:
                session["members"] = list(members[session_id])
        return shown

    def _traces(self, rows: Iterable[Listed], brief: bool) -> list[ReportTrace]:
        traces = []
        for row in rows:
            facts = facts_of(row)
            traces.append(ReportTrace(facts, listed_cure(facts), (0, 0)))
            for said in row.results.values():
                traces[-1].add(shown_object(said, facts["id"], brief))
        self._rows += traces
        return traces


def _cause(unit: ListedSession) -> Hashable:
    """Returns a key that is equal for sessions that failed alike: in which results, and for which agent."""
    worst = unit.worst
    failed = [said for said in unit.results.values() if said["success"] is False]
    failed += [] if worst is None else [said for said in worst.results.values() if said["success"] is False]
    causes = {
        (
            said["metric"],
            said["label"],
            (said["metadata"].get("failure_group") or {}).get("id") or plain(said["reason"]),
        )
        for said in failed
    }
    facts = {} if worst is None else worst.facts
    return facts.get("agent"), plain(facts.get("error", "")), frozenset(causes)


def _state(badness: float) -> float | str:
    """Returns a trace's place on the heat scale: below 0.5 if it failed, else from 0.5; ``none`` without a score."""
    if badness < NOT_FAILED:
        return min(0.49, badness)
    return "none" if badness >= NOT_FAILED + NO_SCORE else max(0.5, badness - NOT_FAILED)


def facts_of(row: Listed) -> dict[str, Any]:
    """Returns what lists show of a stored trace, with the session that it belongs to now."""
    facts = {key: held for key, held in row.facts.items() if key != "session"}
    return facts if row.session is None else {**facts, "session": row.session}
