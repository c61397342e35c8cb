"""Keeps the results of a run of cases, and prints its conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import safe
from pandaeval_collector.judge.context import lines_of
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cases.trial import RUN_ERROR, TrialMatcher
from pandaeval_lab.cli._cases import CaseStage
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.cli._stages import EvaluationOutcome, Stage
from pandaeval_lab.cli._summary import Document
from pandaeval_lab.report.layers import TrialCount
from pandaeval_otel.model import Trace

_MOST_SHOWN = 2000


class CollectedResults(Stage):
    """Keeps gate outcomes, trial counts and results."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.outcomes: Sequence[GateOutcome] = ()
        self.cases: Mapping[str, TrialCount] = {}

    def take(self, result: Result, document: Document) -> None:
        self.documents.append(document)

    def finish(self, outcome: EvaluationOutcome) -> None:
        self.outcomes = outcome.gates
        for stage in outcome.stages:
            if isinstance(stage, CaseStage):
                self.cases = stage.counts()


class Transcripts(Stage):
    """Collects the conversation of each trial, and prints it if ``shown``."""

    def __init__(self, suite: Suite, shown: bool) -> None:
        self._matcher, self._shown = TrialMatcher(suite), shown
        self._traces: dict[tuple[str, str], list[tuple[int, list[str]]]] = {}

    def decided(self, conclusion: Conclusion) -> None:
        for trace in conclusion.traces:
            if (found := self._matcher.case_of(trace)) is not None:
                start = min((span.start_ns for span in trace.spans), default=0)
                trial = (found[0].id, found[1])
                self._traces.setdefault(trial, []).append((start, [*_lines(trace)]))

    def of(self, case: str) -> Mapping[str, str]:
        """Return the conversations of a case by trial."""
        return {
            trial: "\n".join(line for _, lines in sorted(traces) for line in lines)
            for (name, trial), traces in sorted(self._traces.items())
            if name == case
        }

    def show(self, out: Console) -> None:
        for case in dict.fromkeys(case for case, _ in self._traces) if self._shown else ():
            for trial, text in self.of(case).items():
                out.print(Text(f"\n{safe(case)}, trial {safe(trial)}", style="bold"))
                out.print(Text(text))


def _lines(trace: Trace) -> Iterator[str]:
    for line in lines_of(trace):
        yield safe(excerpt(line, _MOST_SHOWN) or "")
    for span in trace.spans:
        if why := span.attributes.get(RUN_ERROR):
            yield f"error: {safe(str(why))}"
