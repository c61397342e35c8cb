"""Is the answer short enough to be read?

1 up to 150 words, and less in proportion beyond. It does not judge whether the answer is right.

Scale: 0..1, 1 is short enough.
Source: a house rule.
"""

from __future__ import annotations

from pandaeval_collector import Finding, Metric, Score, TraceContext, Unscored, Why
from pandaeval_otel import Trace

MOST = 150


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.output is None:
        return Unscored(Why.NO_CONTENT, "no answer was captured")
    words = len(trace.output.split())
    return Score(min(1.0, MOST / max(1, words)), f"{words} words", {"words": words})


METRIC = Metric(
    level="trace",
    name="brevity",
    kind="code",
    version="1",
    threshold=0.5,
    question="Is the answer short enough to be read?",
    needs="answer text",
    evaluate=_evaluate,
    settings={"most": MOST},
    unscored=(Why.NO_CONTENT,),
)
