"""The stages of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from rich.console import Console

from pandaeval_collector.base.result import Result
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.cli._summary import Document, Summary
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.page import ReportOrigin

if TYPE_CHECKING:
    from pandaeval_lab.replay.judge import ReplayJudge


@dataclass(frozen=True, slots=True)
class Replay:
    """The input of an evaluation, its scorer and its judge."""

    files: TraceFiles
    scorer: Evaluator
    judge: ReplayJudge | None


class Stage:
    """A part of an evaluation. By default, methods have no effect."""

    def open(self, held: ExitStack) -> None:
        """Open the stage's files before reading. ``held`` closes them."""

    def begin(self, replay: Replay) -> None:
        """Start after the input is read."""

    def keep(self, run: ScoredTrace) -> bool:
        return True

    def decided(self, conclusion: Conclusion) -> None:
        """Accept a batch of scored traces, before their results."""

    def conclude(self) -> Iterable[Result]:
        """Return further results after all traces. Raises ``UserError``."""
        return ()

    def take(self, result: Result, document: Document) -> None:
        """Accept a result, and its JSON object."""

    def gates(self, summary: Summary) -> Iterable[GateOutcome]:
        return ()

    def tests(self) -> Mapping[str, Sequence[Element]]:
        """Return JUnit test cases by suite."""
        return {}

    def about(self) -> Mapping[str, Any]:
        """Return fields of the :class:`ReportOrigin`."""
        return {}

    def show(self, out: Console) -> None:
        """Print the stage's tables."""

    def finish(self, outcome: EvaluationOutcome) -> None:
        """Write files and notices after the gates."""


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    config: Config
    summary: Summary
    gates: Sequence[GateOutcome]
    about: ReportOrigin
    stages: Sequence[Stage]
    is_json: bool
    """Whether the output is JSON for programs. Then notices are limited to the requested metrics and traces."""
