"""Did each call use the tool that the case expects at this position?

The metric compares actual calls with expected tools, position by position. An extra call shifts all later calls. If
``tool_sequence_matters`` is false, positions are ignored. If no call is expected, 1.0 is assumed. It does not judge
arguments.

Scale: 0..1, the share of expected calls whose tool the agent called at the same position.
Source: Agent Evaluation Framework, layer 2, *Tool routing accuracy*.
"""

from __future__ import annotations

from pandaeval_collector.analysis.stats.tools import tool_routing_accuracy
from pandaeval_collector.base.score import Finding, Score
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import COUNTED, NOTHING_EXPECTED, compared, placed, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    if trial.expected is None:
        return None
    expected = trial.expected_names(trial.called)
    if not expected:
        return NOTHING_EXPECTED
    metadata = {"expected": expected, "actual": list(trial.called)}
    return Score(placed(trial, trial.called, expected, tool_routing_accuracy), compared(trial, trial.called), metadata)


METRIC = trial_metric(_evaluate, version="2", threshold=0.5, needs=COUNTED, layer="action")
