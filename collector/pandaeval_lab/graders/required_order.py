"""Were the required tools called, in the required order?

The agent must call every tool of ``required_order``. The first call of each tool must come after the first call of the
previous tool. For example, a confirmation after the change is too late. Other calls may come in between. It does not
judge arguments.

Scale: 1 or 0.
Source: Agent Evaluation Framework, *Grade Outcomes, Not Paths* (the path as part of the contract).
"""

from __future__ import annotations

from itertools import pairwise

from pandaeval_collector.analysis.stats.tools import common_order
from pandaeval_collector.base.score import Finding, Score
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import names, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    required = trial.case.required_order
    if not required:
        return None
    called = [call.name for call in trial.all_calls]
    metadata = {"required": list(required), "actual": called}
    fault = _fault(required, called)
    return Score(float(not fault), fault or f"called in order: {names(required)}", metadata)


def _fault(required: tuple[str, ...], called: list[str]) -> str:
    missing = [name for name in dict.fromkeys(required) if name not in called]
    if missing:
        return f"not called: {names(missing)}"
    for before, after in pairwise(dict.fromkeys(required)):
        if called.index(after) < called.index(before):
            return f"{after} was called before {before}"
    if common_order(called, required) < len(required):
        return f"not called in this order: {names(required)}"
    return ""


METRIC = trial_metric(_evaluate, needs="a case with required_order", layer="outcome")
