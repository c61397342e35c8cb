"""A trace, a session, and what was concluded about them; the one order in which they are shown: worst first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.show.report.results import ShownResult

NO_SCORE = 2.0
"""Stands for the signal of what has no score: after all others."""


def rank(failed: bool, worst: float, failures: int, name: str) -> tuple[bool, float, int, str]:
    """A key to sort by. What ``failed`` comes first, then by the ``worst`` signal (0..1, or :data:`NO_SCORE`), then by
    how many results failed; ``name`` decides between equals."""
    return not failed, worst, -failures, name


@dataclass(slots=True)
class _Judged:
    results: dict[str, ShownResult] = field(default_factory=dict, init=False)

    def add(self, made: ShownResult) -> None:
        """Takes one result in; the newest revision stands."""
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
        """How many results failed."""
        return sum(result.failed for result in self.results.values())

    @property
    def badness(self) -> float:
        """The worst signal, 0..1: the lower, the worse; 2 where nothing is scored."""
        return min((r.signal for r in self.results.values() if r.signal is not None), default=NO_SCORE)


@dataclass(slots=True)
class ReportTrace(_Judged):
    """``facts``: what lists show; ``cure``: what to do if there is no content; ``place``: of the rest, in the spool;
    ``number``: position by start."""

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
        """How many results failed, and one more if the run itself did."""
        return self.broken + sum(result.failed for result in self.results.values())

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """See :func:`rank`."""
        return rank(self.failed, self.badness, self.failures, self.facts["id"])

    @property
    def broken(self) -> bool:
        """Whether the run itself ended with an error."""
        return "error" in self.facts

    @property
    def badness(self) -> float:
        """As of any other; a run that broke is as bad as can be, as it is to a session's score."""
        signals = (r.signal for r in self.results.values() if r.signal is not None)
        return 0.0 if self.broken else min(signals, default=NO_SCORE)


@dataclass(slots=True)
class ReportSession(_Judged):
    """A conversation, by the ids of its traces. ``whole``: all of its traces are at hand."""

    session_id: str
    trace_ids: set[str] = field(default_factory=set)
    whole: bool = True
