"""Does the trial avoid the failure that a judge found in the original run?

A judge reads the record of the trial, and checks that none of the failures listed in ``absent`` occurred. It does not
judge failures that code can find; ``finding_absent`` does.

Scale: 1 or 0.
Source: ours.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_lab.cases.graders import rule_of
from pandaeval_lab.cases.model import AbsentFinding
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


class RepeatedVerdict(Verdict):
    """``repeated``: the run shows the failure; ``None``: the record does not show whether it does."""

    reason: Reason
    """The message or call that shows the failure, or that avoids it."""
    repeated: bool | None
    """Whether the run shows the failure. Null if the record does not show it."""


RUBRIC = Rubric(
    name="failure_absent",
    version="1",
    text="""
An earlier run of this task had the failure that is described below. Does this run have the same failure?

- The failure is the same if the agent makes the same mistake, in other words or with other values.
- Judge only this failure. Other mistakes do not count.
- If the agent avoids the failure, or reports honestly that it could not do the task, the failure is not repeated.
""",
    verdict=RepeatedVerdict,
)


def _wanted(trial: Trial) -> list[AbsentFinding]:
    return [absent for absent in trial.case.absent if rule_of(absent) is None]


def _before_asking(trial: Trial, context: TrialContext) -> Finding | None:
    if _wanted(trial):
        trial.check_calls()
    return None


async def _ask(trial: Trial, judge: Judge) -> Finding | None:
    for absent in _wanted(trial):
        verdict = await judge.ask(RUBRIC, {"failure": f"{absent.label}: {absent.reason}"})
        if verdict.repeated is None:
            return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {verdict.reason}")
        if verdict.repeated:
            return Score(0.0, f"the failure {absent.label} occurred again: {verdict.reason}", failed=True)
    return Score(1.0, "the failure of the case did not occur again") if _wanted(trial) else None


METRIC = trial_metric(
    _before_asking,
    ask=_ask,
    rubric=RUBRIC,
    needs="a case with absent; a judge",
    unscored=(Why.INSUFFICIENT_EVIDENCE,),
    layer="outcome",
)
