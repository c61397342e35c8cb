"""Scores sessions by the traces that were decided so far."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Sequence

import orjson

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.pipeline.line.facts import SignalFacts
from pandaeval_collector.pipeline.line.members import Member, from_row, summary
from pandaeval_collector.pipeline.line.understanding import SESSION
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.scoring.metric import SessionView
from pandaeval_collector.store import JobRow, StoreReader
from pandaeval_otel.base.names import all_bounded
from pandaeval_otel.model import Trigger

_LINKED = 128
_OPEN = ":open"


class SessionScores:
    """The scores of the sessions of one store. Reads the store and never writes; one thread."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, left_out: Container[str] = frozenset()) -> None:
        """``left_out``: ids of traces that no session is scored by, though answers are compared with theirs."""
        self._store, self._evaluator, self._left_out = store, evaluator, left_out

    def score(self, session_id: str, trigger: Trigger) -> list[Result]:
        """Evaluates the session metrics over the traces decided so far; no results for a session without traces.
        ``SESSION_CHANGED``: the session is open, and its results have other ids than those for good."""
        members = self._scored(session_id)
        if not members:
            return []
        unit, view = _unit(session_id, members, trigger), SessionView(session_id, tuple(map(summary, members)))
        return self._evaluator.session(view, unit)

    def ask(self, session_id: str, trigger: Trigger) -> tuple[list[Result], list[JobRow]]:
        """Returns the results of a closing session's judged metrics that need no judge, and jobs for the others;
        nothing where the session's traces are not judged."""
        members = self._scored(session_id)
        if not any(member.facts.judged for member in members):
            return [], []
        view, unit = _conversation(session_id, members, trigger)
        suspicious = any(m.facts.crashed or any("said" in each for each in m.facts.signals.values()) for m in members)
        results, questions = self._evaluator.judged_session(view, unit, suspicious)
        body = orjson.dumps({SESSION: session_id, "trigger": trigger.value, "suspicious": suspicious})
        last = bytes.fromhex(members[-1].trace_id)
        return results, [JobRow(each.id, last, each.metric.key, 0.0, body) for each in questions]

    def conversation(self, session_id: str, trigger: Trigger) -> tuple[SessionView, Unit] | None:
        """Returns a session as it is now, and the unit of its judged metrics; ``None`` where nothing is left of it."""
        members = self._scored(session_id)
        return _conversation(session_id, members, trigger) if members else None

    def _scored(self, session_id: str) -> list[Member]:
        members = map(from_row, self._store.session_facts(session_id))
        return [member for member in members if member.trace_id not in self._left_out]


def _conversation(session_id: str, members: Sequence[Member], trigger: Trigger) -> tuple[SessionView, Unit]:
    unit = _unit(session_id, members, trigger).with_evidence(_contents(members))
    return SessionView(session_id, tuple(map(summary, members))), unit


def _unit(session_id: str, members: Sequence[Member], trigger: Trigger) -> Unit:
    last = members[-1]
    agent, service, environment = all_bounded((last.facts.agent, last.facts.service, last.facts.environment or ""))
    return Unit(
        level="session",
        id=session_id,
        trace_id=last.trace_id,
        span_id=last.facts.span_id,
        session_id=session_id,
        agent=agent,
        service=service,
        environment=environment or None,
        evidence=_evidence(members) + (_OPEN if trigger is Trigger.SESSION_CHANGED else ""),
        trigger=trigger.value,
        end_ns=last.end_ns,
        sampled=any(member.facts.sampled for member in members),
        trace_ids=tuple(f"{member.trace_id}:{member.facts.span_id}" for member in members[-_LINKED:]),
    )


def _contents(members: Iterable[Member]) -> str:
    """Computes the digest of the traces of a session alone."""
    found = hashlib.blake2b(digest_size=16)
    for member in members:
        found.update(f"{member.trace_id}:{member.facts.digest};".encode())
    return found.hexdigest()


def _evidence(members: Iterable[Member]) -> str:
    """Computes the digest of what the scores of a session depend on: its traces, and the signals that may still come.
    So a session that was scored before those came has other ids than the same session with them."""
    found = hashlib.blake2b(digest_size=16)
    for member in members:
        missing = "".join(_missing(name, each) for name, each in sorted(member.facts.signals.items()))
        found.update(f"{member.trace_id}:{member.facts.digest};{missing}".encode())
    return found.hexdigest()


def _missing(name: str, signal: SignalFacts) -> str:
    """Returns what a session's digest says of a signal that may still come or change; nothing of any other."""
    if signal.get("older"):
        return f"{name}=older {signal['outcome']} {signal['value']};"
    if signal["outcome"] == "pending" or signal["why"] in PASSING:
        return f"{name}={signal['why'] or signal['outcome']};"
    return ""
