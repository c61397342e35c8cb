"""Declares graders, and shares parts of tool graders."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.base.score import Assumed, Finding, Score, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.scoring.metric import Metric
from pandaeval_lab.cases.arguments import differing, in_best_order, matched, tool_parts
from pandaeval_lab.cases.model import WEIGHTS, ExpectedCall, Interaction
from pandaeval_lab.cases.trial import Interacted, Trial, TrialContext
from pandaeval_otel.model import ToolCall

NOTHING_EXPECTED = Assumed("the case expects no call")
COUNTED = "tool calls, and a case with expected tools"


def trial_metric(
    evaluate: Callable[[Trial, TrialContext], Finding | None],
    *,
    needs: str,
    layer: str,
    threshold: float = 1.0,
    version: str = "1",
    unscored: tuple[Why, ...] = (),
    ask: Callable[[Trial, Judge], Awaitable[Finding | None]] | None = None,
    rubric: Rubric | None = None,
) -> Metric:
    """Declare the metric of a grader's file: named like the file, its question is the docstring's first line.

    With ``ask`` and ``rubric``, a judge answers.
    """
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
        unscored=unscored,
        layer=layer,
        ask=ask,
        rubrics=() if rubric is None else (rubric,),
    )


# Tool correctness from its four parts, and its bounds if a part is unknown.
@dataclass(frozen=True, slots=True)
class Weighed:
    """The parts of a score, each 0..1 or ``None`` if unknown.

    ``least`` and ``most``: the mean with all unknown parts 0, and 1.
    """

    parts: Mapping[str, float | None]
    weights: Mapping[str, float]
    least: float
    most: float

    @property
    def value(self) -> float | None:
        """The weighted mean, 0..1; ``None`` if a weighted part is unknown."""
        return self.least if self.least == self.most else None


def weighed(
    trial: Trial, context: TrialContext, expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]
) -> Weighed:
    """Weigh the parts of tool correctness, from counted ``expected`` and ``calls``."""
    in_order = trial.case.tool_sequence_matters and trial.case.tool_match == "all"
    parts: dict[str, float | None] = {**tool_parts(expected, calls, in_order)}
    if arguments_missing(expected, calls):
        parts["parameters"] = None
    parts["utilization"] = _utilization(trial, context)
    weights: dict[str, float] = dict.fromkeys(WEIGHTS, 0.25) | {**trial.case.tool_weights}
    known = math.fsum(weights[name] * part for name, part in parts.items() if part is not None)
    open_ = math.fsum(weights[name] for name, part in parts.items() if part is None)
    return Weighed(parts, weights, min(1.0, known), min(1.0, known + open_))


def weighed_tools(
    trial: Trial, context: TrialContext, expected: Interaction, actual: Interacted | None
) -> Weighed | None:
    """Weigh an interaction's tools; ``None`` without ``expected_tools``, or if no call is expected or made."""
    calls = actual.calls if actual is not None and expected.expected_tools is not None else ()
    wanted = trial.counted_expected(expected.expected_tools, calls)
    if wanted is None or (not wanted and not calls):
        return None
    found = weighed(trial, context, wanted, calls)
    return replace(found, least=0.0, most=0.0) if wanted and not calls else found


def arguments_missing(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> bool:
    return any(each.parameters or each.acceptable for each in expected) and any(not c.has_arguments for c in calls)


def _utilization(trial: Trial, context: TrialContext) -> float | None:
    if not trial.case.results_must_be_used:
        return 1.0
    found = context.judged.get("result_utilization")
    if isinstance(found, Score):
        return found.value
    return 1.0 if found is None and trial.case.results_used else None


def names(calls: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(calls[:12]) or "none"
    return f"{shown}, … ({len(calls)} in all)" if len(calls) > 12 else shown


def placed(
    trial: Trial, actual: Sequence[str], expected: Sequence[str], score: Callable[[Sequence[str], Sequence[str]], float]
) -> float:
    """Score an order. If the order does not matter, return the share of expected names in ``actual``."""
    if trial.case.tool_sequence_matters:
        return score(actual, expected)
    return (Counter(actual) & Counter(expected)).total() / len(expected)


def compared(trial: Trial, actual: list[str] | tuple[str, ...], done: str = "called") -> str:
    return f"expected {names(trial.expected_names(actual))}; {done} {names(actual)}"


def differences(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> str:
    pairs = [(expected[row], calls[column]) for row, column, worth in matched(expected, calls) if worth < 1]
    wrong = "; ".join(f"{each.tool_name}({', '.join(differing(each, call)[:4])})" for each, call in pairs[:3])
    called = [call.name for call in calls]
    wanted = in_best_order(expected, called)
    if wrong and called == wanted:
        return wrong
    return "; ".join(filter(None, (wrong, f"expected {names(wanted)}; called {names(called)}")))
