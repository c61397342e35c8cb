"""The result of a batch, with data for the worker alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.store import JobEnd
from pandaeval_otel.model import Trace


@dataclass(slots=True)
class Conclusion(Decision):
    results: list[Result] = field(default_factory=list)
    runs: list[ScoredTrace] = field(default_factory=list)
    left_out: Collection[str] = ()
    """Ids of unselected agent traces that are not among the runs."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self.changes, self.failed, self.grown, self.has_runs)

    @property
    def traces(self) -> list[Trace]:
        return [run.trace for run in self.runs if run.trace is not None]

    @property
    def not_genai(self) -> int:
        return len(self.changes.traces) - len(self.runs) - len(self.failed) - len(self.left_out)


@dataclass(frozen=True, slots=True)
class Judgement:
    end: JobEnd
    result: Result | None = None
