"""Were the expected tools called, with the expected arguments, in the expected order, and were their results used?

The weighted mean of four parts (``tool_weights`` of the case, 0.25 each without):

- selection: F1 of called and expected tools as multisets;
- parameters: calls matched one to one with expected ones of the same tool so that the sum is best; a pair counts 1 for
  equal arguments, else equal keys / union of keys; the sum / the greater number of calls;
- sequence: longest common subsequence / the greater number of calls; 1 where ``tool_sequence_matters`` is false; calls
  of equal ``step`` may come in any order;
- utilization: how far the answer uses the results, as ``result_utilization`` judged; 1 where ``results_must_be_used``
  is not set, and where no judge is asked and the case says so (``results_used``).

Where calls are expected and none was made the score is 0. Where none is expected and none was made it does not apply.
It does not judge the answer. If the utilization is not known and would decide, there is no score.

Scale: 0..1, 1 is right in every part.
Source: Agentic metric, *Tool Correctness*.
"""

from __future__ import annotations

from pandaeval_collector.base.result import TOLERANCE
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import COUNTED, arguments_missing, compared, trial_metric, weighed, wrong_arguments


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected, calls = trial.expected, trial.calls
    if expected is None or (not expected and not calls):
        return None
    if arguments_missing(expected, calls):
        return Unscored(Why.NO_CONTENT, "arguments of the calls were not captured")
    reason, found = _reason(trial), weighed(trial, context, expected, calls)
    if expected and not calls:
        return Score(0.0, reason, {**found.parts, "utilization": 0.0, "is_correct": False})
    if found.value is None and found.most >= context.threshold - TOLERANCE:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "whether the results were used is not known", found.parts)
    passed = found.least >= context.threshold - TOLERANCE
    return Score(found.least, reason, {**found.parts, "weights": found.weights, "is_correct": passed})


def _reason(trial: Trial) -> str:
    """Writes what is wrong first; the names of the calls only where they differ, or all is right."""
    wrong, names = wrong_arguments(trial), compared(trial, trial.called)
    if wrong and [*trial.called] == trial.expected_names(trial.called):
        return wrong
    return f"{wrong}; {names}" if wrong else names


METRIC = trial_metric(
    _evaluate, version="3", needs=COUNTED, unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE), layer="action"
)
