"""Did the trial end with an answer or a declared end?

The metric applies the rule of ``trace.response`` to the trial's last trace, without ``response.end_tokens``. The trial
also fails if ``trace.response`` passes with ``metadata.ending``, such as ``blocked`` or ``declined``. It does not judge
whether the answer is right. A case declares this grader by its name in ``graders``.

Scale: 0..1, the score of ``trace.response``.
Source: ours.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    found = response(trial.last)
    if isinstance(found, Unscored):
        return Unscored(Why.NO_CONTENT, found.reason)
    if not isinstance(found, Score):
        return None
    ending = found.metadata.get("ending")
    return Score(found.value, found.reason, {"ending": ending}, failed=ending is not None, span_ids=found.span_ids)


METRIC = trial_metric(_evaluate, threshold=0.5, needs="a run that ended", unscored=(Why.NO_CONTENT,), layer="outcome")
