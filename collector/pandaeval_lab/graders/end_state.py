"""Is the end state the expected one?

Every field of ``expected_outcome.end_state``, and every key that you add to ``expected_outcome``, must have the same
value in the actual end state as in the case. The grader ignores other fields of the end state. The end state comes from
the function ``end_state_from``, otherwise from the last attribute ``pandaeval.end_state`` (JSON) on a span or event. It
does not judge how the agent reached the end state.

Scale: 1 if every expected field is equal, otherwise 0.
Source: Agent Evaluation Framework, layer 3, *Task completion*.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.states import differences
from pandaeval_lab.cases.trial import END_STATE, Trial, TrialContext, function
from pandaeval_lab.graders._expected import trial_metric

_SHORT = Repr()
"""Shortens a value for the reason."""
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected = trial.case.end_state
    if not expected:
        return None
    source = trial.case.end_state_from
    actual = trial.stated(END_STATE) if source is None else function(source)(trial)
    if not isinstance(actual, Mapping):
        return Unscored(Why.NO_CONTENT, "no end state was recorded (attribute pandaeval.end_state, or end_state_from)")
    wrong = [*differences(expected, actual)]
    if not wrong:
        return Score(1.0, f"fields with the expected value: {', '.join(expected)}", {"differences": []})
    texts = (
        f"{each['field']}: expected {_SHORT.repr(each['expected'])}, is {_SHORT.repr(each['actual'])}"
        for each in wrong[:5]
    )
    return Score(0.0, "; ".join(texts), {"differences": wrong})


METRIC = trial_metric(
    _evaluate, needs="a recorded end state, and a case that expects one", unscored=(Why.NO_CONTENT,), layer="outcome"
)
