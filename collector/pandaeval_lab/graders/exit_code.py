"""Did the run end with the expected exit code?

The metric reads the exit code from the attribute ``pandaeval.exit_code``. If this attribute is missing, the metric
reads the last tool result with a field such as ``exit_code`` or ``returncode``. It does not judge the output of the
program.

Scale: 1 or 0.
Source: Agent Evaluation Framework, *Code-based graders*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.states import exit_code_of
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected = trial.case.exit_code
    if expected is None:
        return None
    actual = exit_code_of(trial)
    if actual is None:
        return Unscored(Why.NO_CONTENT, "no exit code was recorded (attribute pandaeval.exit_code)")
    codes = {"expected": expected, "actual": actual}
    return Score(float(actual == expected), f"exit code {actual}, expected {expected}", codes)


METRIC = trial_metric(
    _evaluate, needs="a recorded exit code, and a case with exit_code", unscored=(Why.NO_CONTENT,), layer="outcome"
)
