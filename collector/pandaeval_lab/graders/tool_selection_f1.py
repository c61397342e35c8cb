"""Did the agent call exactly the expected tools, each as often as expected?

The score is the F1 score of called and expected tools, counted with repetitions. It does not judge order or arguments.
If both are empty, 1.0 is assumed; if only one is empty, the score is 0.

Scale: 0..1, 1 means that the agent called exactly the expected tools, each as often as expected.
Source: Agent Evaluation Framework, layer 2, *Selection F1*.
"""

from __future__ import annotations

from collections import Counter

from pandaeval_collector.analysis.stats.tools import tool_selection_f1
from pandaeval_collector.base.score import Assumed, Finding, Score
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import COUNTED, compared, trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    if trial.expected is None:
        return None
    expected, called = [each.tool_name for each in trial.expected], trial.called
    if not expected and not called:
        return Assumed("the case expects no call, and none was made")
    missing, extra = Counter(expected) - Counter(called), Counter(called) - Counter(expected)
    metadata = {"missing": sorted(missing.elements()), "extra": sorted(extra.elements())}
    return Score(tool_selection_f1(called, expected), compared(trial, called), metadata)


METRIC = trial_metric(_evaluate, threshold=0.5, needs=COUNTED, layer="action")
