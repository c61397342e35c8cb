"""How many calls did the agent make, compared with the fewest possible?

The score is the fewest possible calls divided by the actual calls, at most 1. The fewest possible calls are
``minimum_steps`` of the case, otherwise the number of expected calls. It does not judge whether the calls were right.
Without any call there is no score.

Scale: 0..1; below 0.5, the agent made more than twice as many calls as needed.
Source: Agent Evaluation Framework, layer 3, *Step efficiency*.
"""

from __future__ import annotations

from pandaeval_collector.analysis.stats.tools import step_efficiency
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    minimum = trial.case.minimum_steps or len(trial.expected or ())
    if not minimum:
        return None
    actual = len(trial.calls)
    value = step_efficiency(actual, minimum)
    if value is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "no call was made")
    return Score(value, f"calls made: {actual}; needed: {minimum}", {"minimum_steps": minimum, "actual_steps": actual})


METRIC = trial_metric(
    _evaluate,
    threshold=0.5,
    needs="calls, and a case with minimum_steps or expected calls",
    unscored=(Why.INSUFFICIENT_EVIDENCE,),
    layer="outcome",
)
