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

import math
from typing import Any

from pandaeval_collector.cases.model import WEIGHTS
from pandaeval_collector.cases.tool_parts import tool_parts
from pandaeval_collector.cases.trial import Trial, TrialContext
from pandaeval_collector.metric import Metric
from pandaeval_collector.metrics.trial._expected import COUNTED, compared
from pandaeval_collector.result import TOLERANCE
from pandaeval_collector.score import Finding, Score, Unscored, Why


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected, calls = trial.expected, trial.calls
    if expected is None or (not expected and not calls):
        return None
    if any(not call.has_arguments for call in calls) and any(each.parameters for each in expected):
        return Unscored(Why.NO_CONTENT, "arguments of the calls were not captured")
    reason = compared(trial, trial.called)
    parts: dict[str, Any] = tool_parts(expected, calls, trial.case.tool_sequence_matters)
    if expected and not calls:
        return Score(0.0, reason, {**parts, "utilization": 0.0, "is_correct": False})
    parts["utilization"] = _utilization(trial, context)
    weights: dict[str, float] = dict.fromkeys(WEIGHTS, 0.25) | {**trial.case.tool_weights}
    known = math.fsum(weights[name] * parts[name] for name in WEIGHTS if parts[name] is not None)
    at_most = known + (weights["utilization"] if parts["utilization"] is None else 0.0)
    if parts["utilization"] is None and at_most >= context.threshold - TOLERANCE:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "whether the results were used is not known", parts)
    value = min(1.0, known)
    metadata = {**parts, "weights": weights, "is_correct": value >= context.threshold - TOLERANCE}
    return Score(value, reason, metadata)


def _utilization(trial: Trial, context: TrialContext) -> float | None:
    if not trial.case.results_must_be_used:
        return 1.0
    found = context.judged.get("result_utilization")
    if isinstance(found, Score):
        return found.value
    return 1.0 if found is None and trial.case.results_used else None


METRIC = Metric(
    level="trial",
    name="tool_correctness",
    kind="code",
    version="1",
    threshold=1.0,
    question="Were the expected tools called, with the expected arguments, in the expected order, and were their "
    "results used?",
    needs=COUNTED,
    evaluate=_evaluate,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    layer="action",
)
