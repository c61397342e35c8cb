"""Rows and cells of the tables of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_collector.show.report.cures import spelled_out, verdict
from pandaeval_collector.show.report.rows import ScoredUnit, rank
from pandaeval_collector.store.listed import NO_SCORE

TURN = "turn "
"""What the names of cells about turns begin with: a trace may have several of one metric."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A result as a table shows it. ``signal``: the score as sessions see it (coherence on its calibrated scale)."""

    metric: str
    outcome: str
    agent: str
    reason: str
    why: str
    score: float | None
    signal: float | None
    success: bool | None
    label: str = ""
    inline: bool = False
    """Whether it is a session's score in which no judge had a part."""

    @property
    def badness(self) -> float:
        """The signal to sort by: the lower, the worse; a result without a score comes last."""
        return NO_SCORE if self.signal is None else self.signal

    @property
    def failed(self) -> bool:
        return self.success is False

    @property
    def says(self) -> str:
        """The words to show in place of a number that would overstate what is known; else empty."""
        if self.signal is None and self.score is not None:  # it explains, and is no verdict
            return self.label
        return verdict(self.label) if self.inline and self.score is not None else ""


@dataclass(slots=True)
class TraceSummaryRow(ScoredUnit[Cell]):
    """A trace with its results by metric, and the results of its turns by turn and metric."""

    trace_id: str
    agent: str
    session_id: str | None
    broken: bool = False
    """Whether the run ended with an error."""
    results: dict[str, Cell] = field(default_factory=dict)

    @property
    def worst_of_turns(self) -> Cell | None:
        """The worst result of any of the trace's turns; ``None`` where no turn has a score."""
        found: Cell | None = None
        for name, cell in self.results.items():
            if name.startswith(TURN):
                found = _worse(found, cell)
        return found

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which traces are sorted, worst first (see :func:`rank`)."""
        return rank(self.failed, self.badness, self.failures, self.trace_id)


@dataclass(slots=True)
class SessionSummaryRow:
    """A session, how many of its traces were scored, and the worst result that was found in it."""

    session_id: str
    traces: int = 0
    reliability: Cell | None = None
    failures: int = 0
    lowest: float = NO_SCORE
    _of_traces: Cell | None = None
    _of_session: Cell | None = None

    def note(self, cell: Cell, of_session: bool = False) -> None:
        """Takes in a result of one of the session's traces or, if ``of_session``, of the session as a whole."""
        self.failures += cell.failed
        self.lowest = min(self.lowest, cell.badness)
        if of_session:
            self._of_session = _worse(self._of_session, cell)
        else:
            self._of_traces = _worse(self._of_traces, cell)

    @property
    def worst(self) -> Cell | None:
        """The worst result of a trace; the session's own worst if that alone failed, or no trace has any."""
        one, whole = self._of_traces, self._of_session
        return whole if one is None or (whole is not None and whole.failed and not one.failed) else one

    @property
    def shown(self) -> Cell | None:
        """The result whose number stands beside :attr:`found`; ``None`` if words alone say that nothing failed."""
        found_nothing = self.worst is not None and not self.worst.failed and self.reliability is not None
        return None if found_nothing and self.reliability is not None and self.reliability.says else self.worst

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which sessions are sorted, worst first (see :func:`rank`)."""
        return rank(self.failures > 0, self.lowest, self.failures, self.session_id)

    @property
    def found(self) -> str:
        """A sentence on the session: the worst result that failed, or that nothing did."""
        if self.worst is None:
            return "nothing scored"
        if self.worst.failed:
            return f"{self.worst.metric}: {self.worst.reason}"
        held = self.reliability
        if held is not None and held.says:
            return spelled_out(held.label, held.reason)
        return f"nothing failed (lowest: {self.worst.metric})"


def _worse(known: Cell | None, cell: Cell) -> Cell | None:
    """Returns the worse result: failed before passed, then by signal, then the known one. Never one without a score."""
    if cell.signal is None:
        return known
    return cell if known is None or (not cell.failed, cell.badness) < (not known.failed, known.badness) else known
