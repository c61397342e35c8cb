"""Did this run go wrong, as runs did that people labelled?

The same as ``session.problem``, for traces without a session: fitted on the application's own labels by ``pandaeval
learn``. There is no result where nothing was learned of the agent. It does not look at what was said or done in this
one case.

Scale: 1 - probability of a problem, calibrated on runs that the model had not seen.

Source: docs/learn.md; logistic regression, Platt's scaling (1999).
"""

from __future__ import annotations

from pandaeval_collector.analysis.rules.course import course
from pandaeval_collector.analysis.stats.problem_features import session_features
from pandaeval_collector.base.score import Finding
from pandaeval_collector.scoring.metric import Metric, TraceContext
from pandaeval_collector.scoring.metrics.session.problem import problem_score
from pandaeval_otel.model import Trace


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if context.learned is None:
        return None
    return problem_score(context.learned, session_features([course(trace)], []))


METRIC = Metric(
    level="trace",
    name="problem",
    kind="math",
    version="1",
    threshold=0.5,
    question="Did this run go wrong, as runs did that people labelled?",
    needs="labels (pandaeval learn)",
    evaluate=_evaluate,
    learned=True,
)
