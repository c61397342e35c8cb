"""Did this session go wrong, as sessions did that people labelled?

A logistic regression on named, countable features (failures, refusals, corrections by the user, changes made, tools
called, lengths …), fitted on the application's own labels by ``pandaeval learn`` and used only where it tells problems
among sessions of equal length better than length does. The score is one less the probability of a problem; there is no
result where nothing was learned of the agent. It does not look at what was said or done in this one case, as rules and
judges do: it says how often sessions like it went wrong. It counts into no other score.

Scale: 1 - probability of a problem, calibrated on sessions that the model had not seen.

Source: docs/learn.md; logistic regression, Platt's scaling (1999).
"""

from __future__ import annotations

from collections.abc import Mapping

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.analysis.stats.problem_features import RULES, session_features
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import Metric, SessionContext, SessionView, TraceSummary


def _evaluate(session: SessionView, context: SessionContext) -> Finding | None:
    learned = context.learned
    if learned is None or not session.traces:
        return None
    courses = [trace.course for trace in session.traces if trace.course is not None]
    if len(courses) < len(session.traces):
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "traces of it were decided before anything was learned")
    return problem_score(learned, session_features(courses, [rule_scores(trace) for trace in session.traces]))


def problem_score(learned: LearnedModel, row: Mapping[str, float]) -> Score:
    """Scores a unit with these features by a learned model."""
    probability, reasons = learned.model.probability(row), learned.model.reasons(row)
    metadata = {
        "problem_probability": round(probability, 4),
        "usual_probability": round(learned.model.rate, 4),
        "reasons": list(reasons),
        "learned": {
            "version": learned.model.version,
            "from": f"{learned.source} ({learned.metric})",
            "labels": learned.labels,
            "auroc": str(learned.auroc),
            "auroc_at_equal_length": str(learned.same_length),
        },
    }
    because = "; ".join(reasons) or "nothing speaks for one"
    reason = (
        f"{because}: a problem in {probability:.0%} of such runs, {learned.model.rate:.0%} of all that were labelled"
    )
    return Score(1.0 - probability, reason, metadata, label="likely_problem" if probability > 0.5 else None)


def rule_scores(trace: TraceSummary) -> dict[str, float]:
    """Returns the scores of metrics without a model that count for the trace's session."""
    found = {name: trace.signals[name].value for name in RULES if name in trace.signals}
    return {name: value for name, value in found.items() if value is not None}


METRIC = Metric(
    level="session",
    name="problem",
    kind="math",
    version="1",
    threshold=0.5,
    question="Did this session go wrong, as sessions did that people labelled?",
    needs="labels (pandaeval learn)",
    evaluate=_evaluate,
    learned=True,
    unscored=(Why.INSUFFICIENT_EVIDENCE,),
    signals=RULES,
)
