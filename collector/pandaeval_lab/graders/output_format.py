"""Does the answer have the expected form?

The answer must meet every condition in ``output_format``: JSON, a JSON schema, a regular expression, required texts or
forbidden texts. The texts apply to all answers of the trial, the other conditions to the last answer. It does not judge
whether the answer is right.

Scale: 1 or 0.
Source: Agent Evaluation Framework, *Code-based graders*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.states import format_faults
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    wanted = trial.case.output_format
    if wanted is None:
        return None
    answer = trial.answer
    if answer is None and not trial.answers:
        if trial.last.error is not None or trial.last.ends_in_tool_call:
            return Score(0.0, "the run ended without an answer", {"faults": ["no answer"]})
        return Unscored(Why.NO_CONTENT, "no answer was captured")
    wrong = [*format_faults(wanted, answer or trial.answers[-1], trial.answers)]
    return Score(float(not wrong), "; ".join(wrong[:5]) or "the answer has the expected form", {"faults": wrong})


METRIC = trial_metric(
    _evaluate, needs="an answer, and a case with output_format", unscored=(Why.NO_CONTENT,), layer="outcome"
)
