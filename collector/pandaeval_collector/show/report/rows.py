"""Traces and sessions with their results, and the one order in which they are shown: worst first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pandaeval_collector.show.report.results import ShownResult
from pandaeval_collector.store.listed import NO_SCORE


def rank(failed: bool, worst: float, failures: int, name: str) -> tuple[bool, float, int, str]:
    """Returns a key to sort by: ``failed`` first, then by the ``worst`` signal (0..1, or :data:`NO_SCORE`), then by how
    many results failed; ``name`` decides between equals."""
    return not failed, worst, -failures, name


class _Signalled(Protocol):
    @property
    def signal(self) -> float | None: ...
    @property
    def failed(self) -> bool: ...


R = TypeVar("R", bound=_Signalled)


class ScoredUnit(Generic[R]):
    """What has results, by which it is sorted: a trace or a session."""

    __slots__ = ()
    results: dict[str, R]

    @property
    def broken(self) -> bool:
        """Whether a run itself ended with an error."""
        return False

    @property
    def failures(self) -> int:
        """The number of failed results, and one more if the run itself failed."""
        return self.broken + sum(result.failed for result in self.results.values())

    @property
    def failed(self) -> bool:
        """Whether a result failed, or the run itself did."""
        return self.failures > 0

    @property
    def badness(self) -> float:
        """The lowest signal, 0..1: the lower, the worse; 0.0 for a run that ended with an error, 2 where nothing is
        scored."""
        signals = (result.signal for result in self.results.values() if result.signal is not None)
        return 0.0 if self.broken else min(signals, default=NO_SCORE)


@dataclass(slots=True)
class _Shown(ScoredUnit[ShownResult]):
    results: dict[str, ShownResult] = field(default_factory=dict, init=False)

    def add(self, made: ShownResult) -> None:
        """Adds one result. Of several revisions the newest is kept, with the scores of the older ones."""
        known = self.results.get(made.key)
        if known is not None and made.revision < known.revision:
            known.older.append(made.short.get("score"))
            return
        if known is not None:
            made.older = [*known.older, known.short.get("score")]
        self.results[made.key] = made


@dataclass(slots=True)
class ReportTrace(_Shown):
    """A trace of the report. ``facts``: what lists show; ``cure``: what to do if it has no content; ``place``: where
    the spool has its details; ``number``: its position by start."""

    facts: dict[str, Any]
    cure: str
    place: tuple[int, int]
    number: int = -1

    @property
    def broken(self) -> bool:
        """Whether the run itself ended with an error."""
        return "error" in self.facts

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which traces are sorted, worst first (see :func:`rank`)."""
        return rank(self.failed, self.badness, self.failures, self.facts["id"])


@dataclass(slots=True)
class ReportSession(_Shown):
    """A session of the report."""

    session_id: str
