"""The stages of an evaluation: choosing traces, grading trials, comparing with a baseline, writing the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pandaeval_collector.base.result import Result
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.page import ReportOrigin

if TYPE_CHECKING:
    from pandaeval_lab.replay.judge import ReplayJudge


class Stage:
    """A part of an evaluation. Each method does nothing unless a stage overrides it."""

    def open(self, held: ExitStack) -> None:
        """Opens the files of the stage, before the input is read. ``held`` closes them."""

    def begin(self, files: TraceFiles) -> None:
        """Called when the input is read."""

    def keep(self, run: ScoredTrace) -> bool:
        """Returns whether a trace is scored."""
        return True

    def decided(self, conclusion: Conclusion) -> None:
        """Takes a batch of scored traces, before their results."""

    def conclude(self, files: TraceFiles, scorer: Evaluator, judge: ReplayJudge | None) -> Iterable[Result]:
        """Returns further results when all traces are scored. Raises ``UserError`` if the evaluation cannot go on."""
        return ()

    def take(self, result: Result, document: Mapping[str, Any]) -> None:
        """Takes a result, and its JSON object."""

    def gates(self, summary: Summary) -> Iterable[GateOutcome]:
        """Returns the outcomes of the stage's gates."""
        return ()

    def about(self) -> Mapping[str, Any]:
        """Returns fields of the :class:`ReportOrigin`."""
        return {}

    def show(self, out: Console) -> None:
        """Prints the stage's part of the tables."""

    def finish(self, outcome: EvaluationOutcome) -> None:
        """Writes files and notices when the gates are known."""


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """The outcome of an evaluation. ``stages``: whose tables are shown."""

    config: Config
    summary: Summary
    gates: Sequence[GateOutcome]
    about: ReportOrigin
    stages: Sequence[Stage]
    is_json: bool
    """Whether programs read the results: notices are limited to the requested metrics and traces."""
