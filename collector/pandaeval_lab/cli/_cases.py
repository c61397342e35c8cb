"""Grades trials in an evaluation, by case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from xml.etree.ElementTree import Element

from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import notice, print_table
from pandaeval_collector.config import closest
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_lab.cases.graders import short_list, suite_warnings
from pandaeval_lab.cases.grading import TrialGrader
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cases.trial import TrialMatcher
from pandaeval_lab.cli._gates import CaseGates, GateOutcome, failing_cases
from pandaeval_lab.cli._stages import EvaluationOutcome, Replay, Stage
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.report.layers import LAYERS, LayerReport, TrialCount, junit_suites

_MAX_ROWS = 60
_NOTHING = "-"
_EMPTY = "- or no column: no grader ran in this layer; to grade reasoning and action, give the case expected_tools"
_COLUMNS = ("case", "kind", "correct", *LAYERS, "broke in", "why")
_REFUSED = "no mock matched, so the call was refused: add a result to mocks"
_PAST_MOCKS = "the tool itself answered, not a mock: wrap the tool with mocked"
_NAMING = (
    "a trace is a trial if its spans name a case (using_case), or if its first user message equals inputs.task, such as"
)


class CaseStage(Stage):
    """Grades a suite's trials after all traces, and reports by case."""

    def __init__(self, suite: Suite, gates: CaseGates | None = None) -> None:
        """``gates``: rules by which cases fail the run."""
        self._suite, self._gates = suite, gates
        self._matcher = TrialMatcher(suite)

    def open(self, held: ExitStack) -> None:
        self._report = LayerReport()

    def keep(self, run: ScoredTrace) -> bool:
        return run.trace is None or not self._matcher.take_spoilt(run.trace)

    def decided(self, conclusion: Conclusion) -> None:
        self._matcher.add(conclusion.traces)

    def begin(self, replay: Replay) -> None:
        self._replay = replay

    def conclude(self) -> Iterator[Result]:
        from pandaeval_lab.replay.trial_grading import graded  # imports what calls models

        grader = TrialGrader(self._replay.scorer, self._suite, self._report.add)
        return graded(self._replay.files, grader, self._matcher, self._replay.judge)

    def gates(self, summary: Summary) -> Iterable[GateOutcome]:
        return failing_cases(self._report) if self._gates is None else self._gates.outcomes(self._report)

    def counts(self) -> Mapping[str, TrialCount]:
        """Return the trial counts by case."""
        return self._report.cases()

    def tests(self) -> Mapping[str, Sequence[Element]]:
        if self._gates is None:
            return junit_suites(self._report)
        return junit_suites(self._report, self._gates.no_fail, with_unscored=True)

    def about(self) -> Mapping[str, Any]:
        return {"cases": self._report.brief()}

    def show(self, out: Console) -> None:
        cases = len(self._report.cases())
        if not cases:
            return
        rows = self._report.brief(_MAX_ROWS)
        notes = []
        if cases > _MAX_ROWS:
            notes.append(f"… and {cases - _MAX_ROWS} more (--format junit has all)")
        if any(_NOTHING in row["layers"] for row in rows):
            notes.append(_EMPTY)
        print_table(_COLUMNS, map(_row, rows), "Cases, failed cases first", out, "\n".join(notes))
        totals = [_row(kind)[:-1] for kind in self._report.by_kind()]
        print_table(_COLUMNS[:-1], totals, "Cases by kind", out)

    def finish(self, outcome: EvaluationOutcome) -> None:
        for text in (*self._mock_notices(), *suite_warnings(self._suite), *self._matching_notices()):
            notice(text)

    def _mock_notices(self) -> Iterator[str]:
        for tools, problem in ((self._report.refused, _REFUSED), (self._report.past_mocks, _PAST_MOCKS)):
            if tools:
                yield f"{problem} ({', '.join(f'{tool} {count}×' for tool, count in tools.most_common(5))})"

    def _matching_notices(self) -> Iterator[str]:
        matcher, cases = self._matcher, len(self._suite.cases)
        for case, count in sorted(matcher.unknown.items())[:10]:
            yield f"{count} traces name the case {case}, which is not in the file"
        if matcher.ambiguous:
            yield f"{matcher.ambiguous} traces have the task of several cases; set pandaeval.case.id (using_case)"
        missing = matcher.without_trial
        if missing:
            shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
            yield f"{len(missing)} of {cases} cases have no trial in the input: {shown}"
        if len(missing) == cases and matcher.unmatched_said:
            yield f"{_NAMING} {matcher.unmatched_said!r}"


def no_case(option: str, name: str, suite: str, ids: Sequence[str]) -> UserError:
    nearest = closest(name, ids)
    known = f"the nearest is {nearest}" if nearest else f"it has {short_list(ids)}"
    return UserError(f"{option} {name}: {suite} has no case of this name; {known}")


def _row(case: Mapping[str, Any]) -> tuple[str, ...]:
    unknown = f" ({case['undetermined']} undetermined)" if case["undetermined"] else ""
    correct = f"{case['correct']}/{case['trials']}{unknown}"
    why = excerpt(case["why"], 100) or ""
    return case["case"], case["kind"], correct, *case["layers"], case["broke"] or _NOTHING, why
