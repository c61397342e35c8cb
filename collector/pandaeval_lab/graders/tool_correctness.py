"""Were the expected tools called, with the expected arguments, in the expected order, and were their results used?

The score is the weighted mean of four parts: selection, parameters, sequence and utilization. The weights are
``tool_weights`` of the case, 0.25 each by default:

- selection: F1 of called and expected tools as multisets;
- parameters: the grader matches each call to at most one expected call of the same tool so that the sum is highest. A
  pair counts 1 for equal arguments, otherwise the number of equal keys divided by the number of all keys. The score is
  the sum divided by the greater number of calls;
- sequence: the length of the longest common subsequence divided by the greater number of calls. It is 1 if
  ``tool_sequence_matters`` is false or ``tool_match`` is ``within``. Calls of equal ``step`` can come in any order;
- utilization: the score of ``result_utilization``. It is 1 unless ``results_must_be_used`` is true. Without a judge, it
  is 1 if the case declares ``results_used``.

If only the interactions of the case have ``expected_tools``, the score is the mean over the reached interactions, and
the trial fails if any of these interactions misses the threshold. Without any call, the score is 0 if calls are
expected; otherwise the grader does not apply. It does not judge the answer. If the verdict depends on an unknown
utilization, there is no score.

Scale: 0..1, 1 means that all four parts have the score 1.
Source: Agentic metric, *Tool Correctness*.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from pandaeval_collector.analysis.stats.tools import tool_band
from pandaeval_collector.base.result import TOLERANCE
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.trial import Trial, TrialContext, interactions
from pandaeval_lab.graders._expected import (
    COUNTED,
    arguments_missing,
    differences,
    trial_metric,
    weighed,
    weighed_tools,
)

_NOT_CAPTURED = Unscored(Why.NO_CONTENT, "arguments of the calls were not captured")
_NOT_JUDGED = Unscored(Why.INSUFFICIENT_EVIDENCE, "it is unknown whether the answer uses the results")


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected, calls = trial.expected, trial.calls
    if expected is None:
        return _of_conversation(trial, context)
    if not expected and not calls:
        return None
    if arguments_missing(expected, calls):
        return _NOT_CAPTURED
    reason, found = differences(expected, calls), weighed(trial, context, expected, calls)
    if expected and not calls:
        return Score(0.0, reason, {**found.parts, "utilization": 0.0, "is_correct": False, "band": tool_band(0.0)})
    if found.value is None and found.most >= context.threshold - TOLERANCE:
        return replace(_NOT_JUDGED, metadata=found.parts)
    passed = found.least >= context.threshold - TOLERANCE
    summary = {"weights": found.weights, "is_correct": passed, "band": tool_band(found.least)}
    return Score(found.least, reason, {**found.parts, **summary})


def _of_conversation(trial: Trial, context: TrialContext) -> Finding | None:
    scores, wrong, unknown = dict[str, float](), "", None
    for number, (each, actual) in enumerate(zip(trial.case.interactions, interactions(trial), strict=False), 1):
        if (found := weighed_tools(trial, context, each, actual)) is None:
            continue
        scores[str(number)] = found.least
        if found.most < context.threshold - TOLERANCE:
            expected = trial.counted_expected(each.expected_tools, actual.calls) or ()
            wrong = wrong or f"interaction {number}: {differences(expected, actual.calls)}"
        elif found.value is None:
            unknown = _NOT_CAPTURED if found.parts["parameters"] is None else _NOT_JUDGED
    if not scores or (unknown is not None and not wrong):
        return unknown
    reason = wrong or f"the calls of {len(scores)} interactions are as expected"
    mean = fmean(scores.values())
    return Score(mean, reason, {"interactions": scores, "band": tool_band(mean)}, failed=bool(wrong))


METRIC = trial_metric(
    _evaluate, version="3", needs=COUNTED, unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE), layer="action"
)
