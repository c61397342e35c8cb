"""Did the agent do its job in this run: all that it was asked for and may do, and nothing that it must not?

The question of ``session.correctness`` about one run, with the conversation before it as context: of a trace without a
session, and with ``judge.correctness: trace`` of each trace of a session too, where it counts for the session's
``agent_reliability``. It does not judge tone or length.

Scale: 0..1, how sure it is that the run was handled correctly; at most 0.49 where it was not.
Source: ours, measured on conversations that people and checkers judged.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.turns import conversation
from pandaeval_collector.scoring.metric import Metric, TraceMetric
from pandaeval_collector.scoring.metrics.session._correctness import DOUBTED, RUBRIC, answered, finding_of
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_TOLD, told
from pandaeval_otel.model import Trace


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    whole = conversation([trace], trace.digest)
    return finding_of(await answered(RUBRIC, whole, judge), whole, judge.pack.suspects)


METRIC: TraceMetric = Metric(
    level="trace",
    name="correctness",
    kind="llm",
    version="2",
    threshold=0.5,
    question="Did the agent do its job in this run?",
    needs="what was said and called; a judge",
    evaluate=lambda trace, context: None if told(trace) else NOTHING_TOLD,
    ask=_ask,
    rubrics=(DOUBTED[RUBRIC.name], RUBRIC),
    asked_by_session=True,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
