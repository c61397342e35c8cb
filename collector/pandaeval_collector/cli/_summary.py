"""What the tables of a run show, gathered result by result in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pandaeval_collector.cli._summary_rows import Cell, SessionSummaryRow, TraceSummaryRow
from pandaeval_collector.report.verdicts import is_inline
from pandaeval_collector.untrusted.plain_error import plain_error

if TYPE_CHECKING:
    from pandaeval_otel.model import Trace

Result = Mapping[str, Any]
"""A result as its JSON object."""

KEEP = 400
"""Only the worst traces are shown, so only so many are remembered."""
_ERRORS = 2000
"""Of so many failed runs it is remembered what went wrong."""


class Summary:
    """Counts by metric, the worst traces, and a row per session."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self.agents_traces = 0
        """Traces of agents, those without any result too."""
        self.has_sessions = False
        """Whether any of them belongs to a session."""
        self.traces = 0
        self._totals: dict[str, list[float]] = {}
        self._apart: dict[str, list[float]] = {}
        self._rows: dict[str, TraceSummaryRow] = {}
        self._sessions: dict[str, SessionSummaryRow] = {}
        self._broken: dict[str, str] = {}

    def runs(self, traces: Iterable[Trace]) -> None:
        """Takes in agents' traces: which ended with an error, as their results are silent about it. To be called before
        those come."""
        for trace in traces:
            self.agents_traces += 1
            self.has_sessions = self.has_sessions or trace.session_id is not None
            if trace.error is not None:
                self._broken[trace.trace_id] = plain_error(trace.error) if len(self._broken) < _ERRORS else ""

    def add(self, result: Result) -> None:
        """Takes one result in. Results of one trace come one after the other."""
        key = f"{result['level']}.{result['metric']}"
        self.outcomes[key, result["outcome"], result["why"] or ""] += 1
        if result["outcome"] == "scored":
            total = self._totals.setdefault(key, [0.0, 0.0, 0.0])
            total[0] += result["score"]
            total[1] += 1
            raw = result.get("raw")
            total[2] += result["score"] if raw is None else raw
            retest = (result.get("metadata") or {}).get("retest")
            if retest is not None:
                self._apart.setdefault(key, []).append(retest["difference"])
        if result["level"] == "session":
            self._add_to_session(result)
        else:
            self._add_to_trace(result)

    def means(self) -> dict[str, float]:
        """The mean score of each metric that has any."""
        return {key: total / count for key, (total, count, _) in self._totals.items()}

    def values(self) -> dict[str, float]:
        """The same in the metric's own scale, where it has one: that of its threshold."""
        return {key: value / count for key, (_, count, value) in self._totals.items()}

    def agreement(self) -> dict[str, tuple[float, int]]:
        """By metric, how far the judge agreed with itself where it was asked twice (1 is perfectly), and how often."""
        return {key: (1.0 - sum(apart) / len(apart), len(apart)) for key, apart in self._apart.items()}

    def sessions_worst_first(self) -> list[SessionSummaryRow]:
        """Sessions without any score come last."""
        return sorted(self._sessions.values(), key=lambda row: row.rank)

    def traces_worst_first(self) -> list[TraceSummaryRow]:
        """At most :data:`KEEP` or twice that; ``traces`` has the number of all."""
        return sorted(self._rows.values(), key=lambda row: row.rank)

    def _add_to_session(self, result: Result) -> None:
        row = self._sessions.setdefault(result["session_id"], SessionSummaryRow(result["session_id"]))
        # Where no metric of traces was asked, only the session's own results tell how many it has.
        row.traces = max(row.traces, (result.get("metadata") or {}).get("total_traces_in_session") or 0)
        cell = _cell(result)
        row.note(cell, of_session=True)
        if cell.metric == "agent_reliability":
            row.reliability = cell

    def _add_to_trace(self, result: Result) -> None:
        session_id = result["session_id"]
        row = self._rows.get(result["trace_id"])
        if row is None:
            self._forget_the_best()
            error = self._broken.get(result["trace_id"])
            row = self._rows[result["trace_id"]] = TraceSummaryRow(
                result["trace_id"], result["agent"], session_id, error is not None
            )
            self.traces += 1
            if session_id is not None:
                session = self._sessions.setdefault(session_id, SessionSummaryRow(session_id))
                session.traces += 1
                if error is not None:
                    session.note(_broken(row.agent, error))
        cell = row.cells[result["metric"]] = _cell(result)
        if session_id is not None:
            session = self._sessions.setdefault(session_id, SessionSummaryRow(session_id))
            session.note(cell)
            if cell.score is not None:
                session.scored.add(cell.metric)

    def _forget_the_best(self) -> None:
        if len(self._rows) >= 2 * KEEP:
            self._rows = {row.trace_id: row for row in self.traces_worst_first()[:KEEP]}


def _broken(agent: str, error: str) -> Cell:
    """Stands for the end of the run among what was found in a session."""
    return Cell("run failed", "", agent, error or "it ended with an error", "", None, 0.0, False)


def _cell(result: Result) -> Cell:
    scored = result["outcome"] == "scored"
    return Cell(
        metric=result["metric"],
        outcome=result["outcome"],
        agent=result["agent"],
        reason=result["reason"],
        why=result["why"] or "",
        score=result["score"] if scored else None,
        signal=float(result["metadata"].get("calibrated", result["score"])) if scored else None,
        success=result["success"],
        label=result.get("label") or "",
        inline=is_inline(result["metadata"]),
        coverage=result.get("coverage", 1.0),
    )
