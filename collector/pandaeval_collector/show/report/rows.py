"""Traces and sessions with their results, and the one order in which they are shown: worst first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.show.report.results import ShownResult

NO_SCORE = 2.0
"""Replaces the signal of a trace or session without a score, so that it sorts after all others."""


def rank(failed: bool, worst: float, failures: int, name: str) -> tuple[bool, float, int, str]:
    """Returns a key to sort by: ``failed`` first, then by the ``worst`` signal (0..1, or :data:`NO_SCORE`), then by how
    many results failed; ``name`` decides between equals."""
    return not failed, worst, -failures, name


@dataclass(slots=True)
class _Judged:
    results: dict[str, ShownResult] = field(default_factory=dict, init=False)

    def add(self, made: ShownResult) -> None:
        """Adds one result. Of several revisions the newest is kept, with the scores of the older ones."""
        known = self.results.get(made.key)
        if known is None:
            self.results[made.key] = made
        elif made.revision >= known.revision:
            made.older = [*known.older, known.short.get("score")]
            self.results[made.key] = made
        else:
            known.older.append(made.short.get("score"))

    @property
    def failed(self) -> bool:
        return any(result.failed for result in self.results.values())

    @property
    def failures(self) -> int:
        """The number of failed results."""
        return sum(result.failed for result in self.results.values())

    @property
    def badness(self) -> float:
        """The lowest signal, 0..1: the lower, the worse; 2 where nothing is scored."""
        return min((r.signal for r in self.results.values() if r.signal is not None), default=NO_SCORE)


@dataclass(slots=True)
class ReportTrace(_Judged):
    """A trace of the report. ``facts``: what lists show; ``cure``: what to do if it has no content; ``place``: where
    the spool has its details; ``number``: its position by start."""

    facts: dict[str, Any]
    cure: str
    place: tuple[int, int]
    number: int = -1

    @property
    def failed(self) -> bool:
        """Whether a result failed, or the run itself did."""
        return self.broken or any(result.failed for result in self.results.values())

    @property
    def failures(self) -> int:
        """The number of failed results, and one more if the run itself failed."""
        return self.broken + sum(result.failed for result in self.results.values())

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which traces are sorted, worst first (see :func:`rank`)."""
        return rank(self.failed, self.badness, self.failures, self.facts["id"])

    @property
    def broken(self) -> bool:
        """Whether the run itself ended with an error."""
        return "error" in self.facts

    @property
    def badness(self) -> float:
        """The lowest signal among the trace's results; 0.0, the worst, for a run that ended with an error."""
        signals = (r.signal for r in self.results.values() if r.signal is not None)
        return 0.0 if self.broken else min(signals, default=NO_SCORE)


@dataclass(slots=True)
class ReportSession(_Judged):
    """A session of the report, with the ids of its traces. ``whole``: all of its traces are in the report."""

    session_id: str
    trace_ids: set[str] = field(default_factory=set)
    whole: bool = True
