"""Declares graders, and what those of tools say alike."""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.base.score import Assumed, Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.scoring.metric import Metric
from pandaeval_lab.cases.arguments import differing, matched, tool_parts
from pandaeval_lab.cases.model import WEIGHTS, ExpectedCall
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_otel.model import ToolCall


def trial_metric(
    evaluate: Callable[[Trial, TrialContext], Finding | None],
    *,
    needs: str,
    layer: str,
    threshold: float = 1.0,
    version: str = "1",
    unscored: tuple[Why, ...] = (),
    ask: Callable[[Trial, Judge], Awaitable[Finding | None]] | None = None,
    rubric: Rubric[Any] | None = None,
) -> Metric[Trial, TrialContext]:
    """Declares the metric of a grader's file, which has the file's name and asks the first line of its docstring. With
    ``ask`` and its ``rubric``, a judge is asked."""
    module = sys.modules[evaluate.__module__]
    return Metric(
        level="trial",
        name=module.__name__.rpartition(".")[2],
        kind="code" if ask is None else "llm",
        version=version,
        threshold=threshold,
        question=(module.__doc__ or "").partition("\n")[0],
        needs=needs,
        evaluate=evaluate,
        ask=ask,
        rubrics=() if rubric is None else (rubric,),
        unscored=unscored,
        layer=layer,
    )


# The four parts of tool correctness put together, and between what the whole lies where one of them is not known.
@dataclass(frozen=True, slots=True)
class Weighed:
    """The parts of a score with their weighted mean. ``parts``: each 0..1, ``None``: not known; ``least`` and ``most``:
    the mean if all unknown parts were 0, and 1: the same number where all is known."""

    parts: Mapping[str, float | None]
    weights: Mapping[str, float]
    least: float
    most: float

    @property
    def value(self) -> float | None:
        """The weighted mean, 0..1; ``None`` where a part that counts is not known."""
        return self.least if self.least == self.most else None


def weighed(
    trial: Trial, context: TrialContext, expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]
) -> Weighed:
    """Weighs the parts of tool correctness. ``expected`` and ``calls``: those that count for the case of the trial."""
    parts: dict[str, float | None] = {**tool_parts(expected, calls, trial.case.tool_sequence_matters)}
    if arguments_missing(expected, calls):
        parts["parameters"] = None
    parts["utilization"] = _utilization(trial, context)
    weights: dict[str, float] = dict.fromkeys(WEIGHTS, 0.25) | {**trial.case.tool_weights}
    known = math.fsum(weights[name] * part for name, part in parts.items() if part is not None)
    open_ = math.fsum(weights[name] for name, part in parts.items() if part is None)
    return Weighed(parts, weights, min(1.0, known), min(1.0, known + open_))


def arguments_missing(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> bool:
    """Returns whether arguments are expected, and those of a call were not captured."""
    return any(each.parameters or each.acceptable for each in expected) and any(not c.has_arguments for c in calls)


def _utilization(trial: Trial, context: TrialContext) -> float | None:
    """Returns the judge's score for the use of results; 1 if the case does not ask for it, or states it itself."""
    if not trial.case.results_must_be_used:
        return 1.0
    found = context.judged.get("result_utilization")
    if isinstance(found, Score):
        return found.value
    return 1.0 if found is None and trial.case.results_used else None


NOTHING_EXPECTED = Assumed("the case expects no call")
COUNTED = "tool calls, and a case with expected_tools or expected_outcome.tools_called"


def names(calls: list[str] | tuple[str, ...]) -> str:
    """Writes at most 12 names, for reasons."""
    shown = ", ".join(calls[:12]) or "none"
    return f"{shown}, … ({len(calls)} in all)" if len(calls) > 12 else shown


def compared(trial: Trial, actual: list[str] | tuple[str, ...]) -> str:
    return f"expected {names(trial.expected_names(actual))}; called {names(actual)}"


def wrong_arguments(trial: Trial) -> str:
    """Describes, by call, the arguments that are not as expected; ``""`` for none."""
    expected = trial.expected or ()
    pairs = [(expected[row], trial.calls[column]) for row, column, worth in matched(expected, trial.calls) if worth < 1]
    told = [f"{each.tool_name}({', '.join(differing(each, call)[:4])})" for each, call in pairs[:3]]
    return "; ".join(told)
