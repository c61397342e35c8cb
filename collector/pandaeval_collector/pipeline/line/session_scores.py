"""Scores sessions by their decided traces."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

import orjson

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.pipeline.line.members import Member, from_row, summary, unit_again
from pandaeval_collector.pipeline.line.revisions import emptied
from pandaeval_collector.pipeline.line.understanding import SESSION
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.scoring.metric import SessionView
from pandaeval_collector.store import JobRow, StoreReader
from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trigger

_LINKED = 128
_OPEN = ":open"


class SessionScores:
    """Scores the sessions of a store. Only reads it; single-threaded."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, left_out: Container[str] = frozenset()) -> None:
        self._store, self._evaluator, self._left_out = store, evaluator, left_out

    def score(self, session_id: str, trigger: Trigger) -> tuple[list[Result], list[JobRow]]:
        """Evaluate session metrics, and judged metrics of a closing session, as jobs if needed.

        ``SESSION_CHANGED``: provisional, with separate ids.
        """
        members = self._scored(session_id)
        if not members:
            return emptied(self._store, self._evaluator, session_id, trigger), []
        view = SessionView(session_id, tuple(map(summary, members)))
        results = self._evaluator.session(view, _unit(session_id, members, trigger))
        if trigger is Trigger.SESSION_CHANGED or not any(member.facts.judged for member in members):
            return results, []
        unit = _conversation(session_id, members, trigger)
        judged, questions = self._evaluator.judged_session(view, unit)
        body = orjson.dumps({SESSION: session_id, "trigger": trigger.value})
        last = bytes.fromhex(members[-1].trace_id)
        return results + judged, [JobRow(each.id, last, each.metric.key, 0.0, body) for each in questions]

    def conversation(self, session_id: str, trigger: Trigger) -> tuple[SessionView, Unit] | None:
        """Return the session and its judged unit, ``None`` if empty."""
        if members := self._scored(session_id):
            view = SessionView(session_id, tuple(map(summary, members)))
            return view, _conversation(session_id, members, trigger)
        return None

    def traces_of(self, unit: Unit) -> list[str]:
        if unit.level != "session":
            return [unit.trace_id]
        return [member.trace_id for member in self._scored(unit.id) if member.facts.judged]

    def _scored(self, session_id: str) -> list[Member]:
        members = map(from_row, self._store.session_facts(session_id))
        return [member for member in members if member.trace_id not in self._left_out]


def _conversation(session_id: str, members: Sequence[Member], trigger: Trigger) -> Unit:
    contents = _digest(f"{member.trace_id}:{member.facts.digest};" for member in members)
    return _unit(session_id, members, trigger).with_evidence(contents)


def _unit(session_id: str, members: Sequence[Member], trigger: Trigger) -> Unit:
    """Make a session's unit. Different signals give different ids."""
    last = members[-1]
    named = (each.facts.agent for each in reversed(members) if each.facts.agent != each.facts.service)
    evidence = _digest(f"{each.trace_id}:{each.facts.digest};{_missing(each)}" for each in members)
    return replace(
        unit_again(last, session_id, evidence + (_OPEN if trigger is Trigger.SESSION_CHANGED else "")),
        agent=bounded(next(named, last.facts.agent)),
        level="session",
        id=session_id,
        revision=1,
        trigger=trigger.value,
        response_id="",
        sampled=any(member.facts.sampled for member in members),
        trace_ids=tuple(f"{member.trace_id}:{member.facts.span_id}" for member in members[-_LINKED:]),
    )


def _digest(parts: Iterable[str]) -> str:
    return hashlib.blake2b("".join(parts).encode(), digest_size=16).hexdigest()


def _missing(member: Member) -> str:
    text = ""
    for name, signal in sorted(member.facts.signals.items()):
        if signal.get("older"):
            text += f"{name}=older {signal['outcome']} {signal['value']};"
        elif signal.get("dismissed"):
            text += f"{name}=dismissed;"
        elif signal["outcome"] == "pending" or signal["why"] in PASSING:
            text += f"{name}={signal['why'] or signal['outcome']};"
    return text
