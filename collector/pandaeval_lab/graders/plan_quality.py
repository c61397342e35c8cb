"""Does the plan contain the expected tools in the expected order?

The score is the share of expected tools that the plan contains in order (longest common subsequence). If
``tool_sequence_matters`` is false, the order is ignored. Without a declared plan (see ``plan_adherence``), the agent's
calls are the plan. It does not judge arguments. Extra tools do not lower the score; ``metadata.extra_steps`` lists
them. If no call is expected, 1.0 is assumed.

Scale: 0..1, 1 means that the plan has all expected tools in the right order.
Source: Agent Evaluation Framework, layer 1, *Plan quality* (the sentence, not the listing).
"""

from __future__ import annotations

from pandaeval_collector.analysis.stats.tools import common_order, plan_order
from pandaeval_collector.base.score import Finding, Score
from pandaeval_lab.cases.states import planned_tools
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import COUNTED, NOTHING_EXPECTED, compared, placed, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    if trial.expected is None:
        return None
    plan = planned_tools(trial)
    actual = list(trial.called) if plan is None else plan
    expected = trial.expected_names(actual)
    if not expected:
        return NOTHING_EXPECTED
    extra = len(actual) - common_order(actual, expected)
    basis, done = ("calls", "called") if plan is None else ("plan", "planned")
    metadata = {"expected": expected, "actual": actual, "extra_steps": extra, "basis": basis}
    return Score(placed(trial, actual, expected, plan_order), compared(trial, actual, done), metadata)


METRIC = trial_metric(_evaluate, version="2", threshold=0.5, needs=COUNTED, layer="reasoning")
