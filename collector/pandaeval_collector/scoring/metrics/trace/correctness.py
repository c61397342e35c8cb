"""Did the agent do its job in this run: all that it was asked for and may do, and nothing that it must not?

A judge answers the question of ``session.correctness`` for a single run. The metric applies to traces without a
session. With ``judge.correctness: trace``, it applies to every trace, and counts for ``agent_reliability``. It does not
judge tone or length. The labels ``unclear`` and ``disputed`` have the same meaning as in ``session.correctness``.

Scale: 0..1, the certainty of the judge that the run was handled correctly; a wrong run has at most 0.49.
Source: ours, measured on conversations that people and checkers judged.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.scoring.metric import JudgedTraceMetric
from pandaeval_collector.scoring.metrics.session._correctness import ENOUGH, PART, finding_of, too_long
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_CAPTURED, has_any_content, judged_metric
from pandaeval_otel.model import Trace


async def _ask(trace: Trace, judge: Judge) -> Finding:
    if judge.pack.shown < ENOUGH:
        return too_long("run", judge.pack.shown, {})
    found, _ = await judge.answer(PART, trace)
    return finding_of(found, conversation([trace], trace.digest), judge.pack.suspects)


METRIC = judged_metric(
    JudgedTraceMetric,
    PART,
    _ask,
    "Did the agent do its job in this run?",
    __doc__,
    "messages or calls; a judge",
    lambda trace, context: None if has_any_content(trace) else NOTHING_CAPTURED,
    asked_by_session=True,
)
