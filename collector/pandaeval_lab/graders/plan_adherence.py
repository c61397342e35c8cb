"""Did the agent do what it had planned?

The score is the share of planned tools that the agent called in the planned order (longest common subsequence). The
plan is the attribute ``pandaeval.plan`` (a JSON list of tool names, or of objects with ``tool``). Without this
attribute, the plan is a list in the model's thoughts or texts before its first call. The list is numbered or bulleted,
and has at least two lines. The first tool name in a line counts, and lines without a tool name do not count. Without a
plan, the grader does not apply. It does not judge whether the plan was good (``plan_quality``).

Scale: 0..1, 1 means that the agent followed the plan.
Source: Agent Evaluation Framework, layer 1, *Plan adherence*.
"""

from __future__ import annotations

from pandaeval_collector.analysis.stats.tools import plan_order
from pandaeval_collector.base.score import Finding, Score
from pandaeval_lab.cases.states import planned_tools
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import names, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    plan = planned_tools(trial)
    if not plan:
        return None
    called = [call.name for call in trial.all_calls]
    reason = f"planned {names(plan)}; called {names(called)}"
    return Score(plan_order(called, plan), reason, {"plan": plan, "actual": called})


METRIC = trial_metric(_evaluate, threshold=0.5, needs="a declared plan that names tools", layer="reasoning")
