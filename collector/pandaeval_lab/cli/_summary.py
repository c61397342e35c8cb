"""Gathers the content of a run's tables."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pandaeval_collector.base.result import OPEN, Result, is_verdict
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.show.view.rates import OutcomeCounts, handled
from pandaeval_collector.store.failures import Failure, failure_of
from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_lab.replay.root_causes import RootCause

Document = Mapping[str, Any]
"""A result as its JSON object."""

MOST_FAILURES = 5000
"""Maximum number of failures that are kept and grouped."""
_EXAMPLES = 3
_SILENT = ("judge_failed", "timeout")
_HEARD = ("invalid_verdict", "injection_suspected")
"""Reasons for a missing score: without an answer of the judge, and with an answer."""
_UNITS = """SELECT count(*), total(failed), total(session) FROM (
    SELECT min(badness) < ? AS failed, session FROM listed
    GROUP BY iif(session > 0, -session, no) HAVING max(no) > 0)"""
"""Counts sessions and traces without a session, all and with a finding."""


@dataclass(frozen=True, slots=True)
class Worst:
    """A metric's low result. ``value``: in the metric's own scale."""

    value: float
    where: str
    reason: str


@dataclass(slots=True)
class _Scores:
    n: int = 0
    scores: Fraction = Fraction()
    values: Fraction = Fraction()
    worst: list[Worst] = field(default_factory=list)

    def add(self, result: Document) -> None:
        raw = result.get("raw")
        value = result["score"] if raw is None or not math.isfinite(raw) else raw
        self.n += 1
        self.scores += Fraction(result["score"])
        self.values += Fraction(value)
        if len(self.worst) < _EXAMPLES or value < self.worst[-1].value:
            where = f"session {result['session_id']}" if result["level"] == "session" else f"trace {result['trace_id']}"
            known = [*self.worst, Worst(value, where, result["reason"])]
            self.worst = sorted(known, key=lambda each: each.value)[:_EXAMPLES]


class Summary:
    """Counts results by metric, and sessions."""

    def __init__(self) -> None:
        self.tallies: dict[str, OutcomeCounts] = {}
        """Counts of results by metric."""
        self.agents_traces = 0
        """Traces of agents, also without any result."""
        self.has_sessions = False
        """Whether any agent's trace belongs to a session."""
        self.units = self.found = 0
        """Number of sessions and traces without a session, and the number with findings; 0 until counted."""
        self._scores: dict[str, _Scores] = {}
        self._answered = False
        self._unanswered: Counter[str] = Counter()
        self._silence = ""
        self.judge_tokens = self.judge_unpriced = 0
        self.judge_usd: float | None = None
        self.without_agents = 0
        """Traces in which no agent worked."""
        self.left_out = 0
        """Agents' traces that were not chosen."""
        self.failures: list[Failure] = []
        """The first :data:`MOST_FAILURES` failures, in the order in which they were found."""
        self.groups: tuple[RootCause, ...] = ()
        """The failures by root cause, most severe first; empty until they are grouped."""

    def decided(self, conclusion: Conclusion) -> None:
        self.agents_traces += len(conclusion.runs)
        self.without_agents += conclusion.not_genai
        self.left_out += len(conclusion.left_out)

    def count(self, reader: sqlite3.Connection) -> None:
        """Count sessions and findings in a store."""
        self.units, found, sessions = reader.execute(_UNITS, (NOT_FAILED,)).fetchone()
        self.found, self.has_sessions = int(found), sessions > 0

    def take(self, result: Result, document: Document) -> None:
        self.add(document)
        failure = failure_of(result)
        if failure is not None and len(self.failures) < MOST_FAILURES:
            self.failures.append(failure)

    def add(self, result: Document) -> None:
        key = f"{result['level']}.{result['metric']}"
        if result["level"] == "task":  # a mean over several k has no meaning
            key += f" (k = {result['metadata']['k']})"
        is_rated = not (result.get("metadata") or {}).get("selected")
        if is_rated:
            tally = self.tallies.setdefault(key, OutcomeCounts())
            tally.add(result["outcome"], result["success"], result["why"], label=result.get("label"))
        if (result.get("evaluator") or {}).get("kind") == "llm":
            self._add_cost(result)
            if result["why"] in _SILENT:
                self._silence = self._silence or result["reason"]
                self._unanswered[result["why"]] += 1
            self._answered = self._answered or result["outcome"] == "scored" or result["why"] in _HEARD
        if result["outcome"] == "scored" and is_rated and is_verdict(result) and result.get("label") not in OPEN:
            self._scores.setdefault(key, _Scores()).add(result)

    def _add_cost(self, result: Document) -> None:
        usd = result.get("cost_usd")
        self.judge_tokens += result.get("tokens") or 0
        if usd:
            self.judge_usd = (self.judge_usd or 0.0) + usd
        elif result.get("tokens"):
            self.judge_unpriced += 1

    def means(self) -> dict[str, float]:
        return {key: float(each.scores) / each.n for key, each in self._scores.items()}

    def values(self) -> dict[str, float]:
        """Return each metric's mean in its own scale."""
        return {key: float(each.values) / each.n for key, each in self._scores.items()}

    def worst(self, key: str) -> Sequence[Worst]:
        return self._scores[key].worst if key in self._scores else []

    @property
    def headline(self) -> str:
        """Summarize how many units a judge found correct, else how many units have findings."""
        have = f"{'session' if self.has_sessions else 'run'}s {'has' if self.found == 1 else 'have'}"
        others = f"not judged: {self.found:,} of {self.units:,} {have} findings"
        return handled(self.tallies) or (others if self.units else "")

    @property
    def silence(self) -> str:
        """Report a judge without any answer: number of questions and first error."""
        if self._answered or not self._unanswered:
            return ""
        return f"{self._silence}. 0 of {self._unanswered.total()} questions were answered."
