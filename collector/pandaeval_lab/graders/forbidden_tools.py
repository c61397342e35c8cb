"""Did the agent avoid the forbidden tools?

The score is 0 if the agent called a tool that ``forbidden_tools`` lists, even if the call failed. In this list, ``*``
matches any characters. It does not judge the other calls.

Scale: 1 or 0.
Source: Agent Evaluation Framework, *Code-based graders*.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from pandaeval_collector.base.score import Finding, Score
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import names, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    forbidden = trial.case.forbidden_tools
    if not forbidden:
        return None
    calls = [call for call in trial.all_calls if any(fnmatchcase(call.name, pattern) for pattern in forbidden)]
    if not calls:
        return Score(1.0, f"not called: {names(forbidden)}", {"called": []})
    called = [*dict.fromkeys(call.name for call in calls)]
    spans = tuple(call.span_id for call in calls if call.span_id)
    return Score(0.0, f"called: {names(called)}", {"called": called}, span_ids=spans)


METRIC = trial_metric(_evaluate, needs="a case with forbidden_tools", layer="outcome")
