"""Asks a judge about a run whose verdict is known, as the collector would ask about any other run."""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.jobs.canary_file import Expected
from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.scoring.metric import Texts, TraceContext, TraceMetric
from pandaeval_otel.model import Trace


async def finding_of(metric: TraceMetric, trace: Trace, judge: Judge) -> Finding | None:
    """The finding of a judged metric on a run. Raises what keeps a call from being made."""
    before = metric.evaluate(trace, TraceContext(Texts({}, (), "none", None), 0.5))
    if before is not None or metric.ask is None:
        return before
    try:
        return await metric.ask(trace, judge)
    except NoVerdictError as error:
        return Unscored(error.why, str(error))


def said(finding: Score) -> float:
    """What the judge itself said, 0..1: the score, but for one that facts counted by code made lower."""
    judged = finding.metadata.get("judged")
    return float(judged) if isinstance(judged, int | float) and 0.0 <= judged <= 1.0 else finding.value


def as_expected(finding: Finding | None, expected: Expected) -> bool:
    """Whether a finding is what a canary says: a score within its band, or unscored for the reason that it names."""
    if isinstance(expected, str):
        return isinstance(finding, Unscored) and finding.why is Why(expected)
    return isinstance(finding, Score) and expected[0] <= finding.value <= expected[1]
