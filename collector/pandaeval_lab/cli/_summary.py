"""Gathers the content of a run's tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import orjson

from pandaeval_collector.base.result import OPEN, Result, is_verdict
from pandaeval_collector.base.untrusted.foreign import plain_error
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.show.view.rates import OutcomeCounts, handled
from pandaeval_collector.show.view.results import ResultView, spelled_out
from pandaeval_collector.store.failures import Failure, failure_of
from pandaeval_collector.store.listed import NO_SCORE
from pandaeval_lab.cli._costs import CostSums
from pandaeval_lab.replay.root_causes import RootCause

Document = Mapping[str, Any]
"""A result as its JSON object."""

MOST_FAILURES = 5000
"""At most so many failures are kept and grouped."""
_EXAMPLES = 3
_SILENT = ("judge_failed", "timeout")
_HEARD = ("invalid_verdict", "injection_suspected")
"""Reasons for a missing score with which the judge did not answer, and those with which it did."""
_ERRORS = 2000
"""Of at most so many failed runs the error text is kept."""


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
    """Counts results by metric, with a row per session or trace without a session."""

    def __init__(self) -> None:
        self.tallies: dict[str, OutcomeCounts] = {}
        """Counts of results by metric."""
        self.agents_traces = 0
        """Traces of agents, those without any result too."""
        self.has_sessions = False
        """Whether any agent's trace belongs to a session."""
        self.trace_ids: set[str] = set()
        """The traces with results."""
        self._scores: dict[str, _Scores] = {}
        self._answered = False
        self._unanswered: Counter[str] = Counter()
        self._silence = ""
        self._sessions: dict[str, SessionSummaryRow] = {}
        self._broken: dict[str, str] = {}
        self.costs = CostSums()
        self.without_agents = 0
        """Traces in which no agent worked."""
        self.left_out = 0
        """Agents' traces that were not chosen."""
        self.failures: list[Failure] = []
        """The first :data:`MOST_FAILURES` failures, in the order in which they were found."""
        self.groups: tuple[RootCause, ...] = ()
        """The failures by root cause, gravest first; empty until they are grouped."""

    def decided(self, conclusion: Conclusion) -> None:
        self.add_traces(conclusion.told)
        for run in conclusion.runs:
            if run.listed is not None:
                self.costs.ran({"session": run.unit.session_id, **orjson.loads(run.listed.facts)})
        self.without_agents += conclusion.not_genai
        self.left_out += len(conclusion.left_out)

    def add_traces(self, traces: Iterable[tuple[str, str | None, str | None]]) -> None:
        for trace_id, session_id, error in traces:
            self.agents_traces += 1
            self.has_sessions = self.has_sessions or session_id is not None
            if error is not None:
                self._broken[trace_id] = plain_error(error) if len(self._broken) < _ERRORS else ""

    def take(self, result: Result, document: Document) -> None:
        self.add(document)
        failure = failure_of(result)
        if failure is not None and len(self.failures) < MOST_FAILURES:
            self.failures.append(failure)

    def add(self, result: Document) -> None:
        key = f"{result['level']}.{result['metric']}"
        if result["level"] == "task":  # a mean over several k would mean nothing
            key += f" (k = {result['metadata']['k']})"
        is_rated = not (result.get("metadata") or {}).get("selected")
        if is_rated:
            tally = self.tallies.setdefault(key, OutcomeCounts())
            tally.add(result["outcome"], result["success"], result["why"], label=result.get("label"))
        if (result.get("evaluator") or {}).get("kind") == "llm":
            self.costs.judged(result)
            if result["why"] in _SILENT:
                self._silence = self._silence or result["reason"]
                self._unanswered[result["why"]] += 1
            self._answered = self._answered or result["outcome"] == "scored" or result["why"] in _HEARD
        if result["outcome"] == "scored" and is_rated and is_verdict(result) and result.get("label") not in OPEN:
            self._scores.setdefault(key, _Scores()).add(result)
        if result["level"] == "session":
            row = self._session(result["session_id"])
            # Where no metric of traces was asked, only the session's own results tell how many it has.
            row.traces = max(row.traces, (result.get("metadata") or {}).get("total_traces_in_session") or 0)
            row.note(ResultView.of(result), of_session=True)
        elif result["level"] not in ("trial", "task"):
            self._add_to_trace(result)

    def means(self) -> dict[str, float]:
        return {key: float(each.scores) / each.n for key, each in self._scores.items()}

    def values(self) -> dict[str, float]:
        """Return each metric's mean in its own scale."""
        return {key: float(each.values) / each.n for key, each in self._scores.items()}

    def worst(self, key: str) -> Sequence[Worst]:
        return self._scores[key].worst if key in self._scores else []

    @property
    def headline(self) -> str:
        """Summarize how much a judge found correct, else how much has findings."""
        rows = self._sessions.values()
        found = sum(not row.rank[0] for row in rows)
        unit = "session" if self._sessions.keys() - self.trace_ids else "trace"
        others = f"not judged: {found:,} of {len(rows):,} {unit}s {'has' if found == 1 else 'have'} findings"
        return handled(self.tallies) or (others if rows else "")

    @property
    def silence(self) -> str:
        """Report a judge without any answer: number of questions and first error."""
        if self._answered or not self._unanswered:
            return ""
        return f"{self._silence}. 0 of {self._unanswered.total()} questions were answered."

    def sessions_worst_first(self) -> list[SessionSummaryRow]:
        """Return the rows, worst first; rows without score come last."""
        return sorted(self._sessions.values(), key=lambda row: row.rank)

    def _session(self, session_id: str) -> SessionSummaryRow:
        return self._sessions.setdefault(session_id, SessionSummaryRow(session_id))

    def _add_to_trace(self, result: Document) -> None:
        trace_id = result["trace_id"]
        row = self._session(result["session_id"] or trace_id)
        if trace_id not in self.trace_ids:
            self.trace_ids.add(trace_id)
            row.traces += 1
            error = self._broken.get(trace_id)
            if error is not None:
                why = error or "it ended with an error"
                row.note(ResultView("run failed", "", None, 0.0, False, reason=why, agent=result["agent"]))
        row.note(cell := ResultView.of(result))
        if cell.metric == "trace.correctness" and result["session_id"] is None:
            row.verdict = cell


def worse(known: ResultView | None, row: ResultView) -> ResultView | None:
    if row.signal is None or known is None or known.signal is None:
        return known if row.signal is None else row
    return row if row.urgency < known.urgency else known


@dataclass(slots=True)
class SessionSummaryRow:
    """A session, or a trace without a session, with its worst result."""

    session_id: str
    traces: int = 0
    reliability: ResultView | None = None
    verdict: ResultView | None = None
    """Whether a judge found that it was handled correctly: the session, or the trace without a session."""
    failures: int = 0
    lowest: float = NO_SCORE
    _of_traces: ResultView | None = None
    _of_session: ResultView | None = None

    def note(self, cell: ResultView, of_session: bool = False) -> None:
        """Add a result of a trace or, if ``of_session``, of the session."""
        self.failures += cell.failed
        self.lowest = self.lowest if cell.signal is None else min(self.lowest, cell.signal)
        if not of_session:
            self._of_traces = worse(self._of_traces, cell)
            return
        self._of_session = worse(self._of_session, cell)
        if cell.metric == "session.agent_reliability":
            self.reliability = cell
        elif cell.metric == "session.correctness":
            self.verdict = cell

    @property
    def worst(self) -> ResultView | None:
        one, whole = self._of_traces, self._of_session
        return whole if one is None or (whole is not None and whole.failed and not one.failed) else one

    @property
    def shown(self) -> ResultView | None:
        worst, whole = self.worst, self.reliability
        return None if worst is not None and not worst.failed and whole is not None and whole.says else worst

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """Sort key: failed rows first, then by lowest signal and number of failures."""
        return not self.failures, self.lowest, -self.failures, self.session_id

    @property
    def found(self) -> str:
        verdict, worst = self.verdict, self.worst
        if verdict is not None and verdict.failed:
            return f"{verdict.fault}: {verdict.reason}"
        if worst is not None and worst.failed:
            return f"{worst.metric}: {worst.reason}"
        if verdict is not None and verdict.success:
            return f"handled correctly: {verdict.reason}"
        if verdict is not None and verdict.label in OPEN:
            return f"{verdict.label}: {verdict.reason}"
        if worst is None:
            return "nothing scored"
        held = self.reliability
        if held is not None and held.says:
            return spelled_out(held.label, held.reason)
        return f"no failures (lowest: {worst.metric})"
