"""Did the trial end with an answer or a declared end?

The metric applies the rule of ``trace.response`` to the trial's last trace. The trial also fails if ``trace.response``
passes with a label, such as ``blocked`` or ``declined``. It does not judge whether the answer is right. A case declares
this grader by its name in ``graders``.

Scale: 0..1, the score of ``trace.response``.
Source: ours.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.scoring.metrics.trace.response import METRIC as RESPONSE, response
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    found = response(trial.last, context.end_tokens)
    if not isinstance(found, Score):
        return found
    metadata = {"ending": found.metadata.get("ending")}
    return Score(found.value, found.reason, metadata, failed=found.label is not None, span_ids=found.span_ids)


METRIC = trial_metric(
    _evaluate, threshold=0.5, needs="a run that ended", unscored=RESPONSE.unscored, layer="outcome", version="2"
)
