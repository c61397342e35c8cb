"""Did the run end with an answer, or by declaring its end?

1 if it did, else 0 with a label: ``error`` (the run ended with an error), ``empty_answer`` (silence, or punctuation
alone, as the answer to the user), ``control_token`` (``###STOP###`` or the like instead of an answer),
``dangling_tool_call`` (the last thing was a tool call that nothing answered), ``unrecovered_tool_error`` (the last call
that was to change something, or all there were, failed and nothing made up for it; 0.4 where the answer owns up to
it: honest, and still not done), ``false_success`` (that, and the answer says that it was done; critical). Where the
answer owns up to it and asks how to go on, the agent handed over, or one of the next three traces of the session made
up for it (then a revision tells, ``recovered_by``), the score is 0.5 and passes.
A token alone ends a run where the instructions name it or ``response.end_tokens`` lists it. It does not judge whether
the answer is right, and takes no refusal for a failure. What was not captured is no silence: then nothing is said.

Ours: a run that crashed or stayed silent has nothing that the other metrics could find fault with.
"""

from __future__ import annotations

from pandaeval_collector.analysis.rules.response import ASKS_ON, Ending, Unknown, response
from pandaeval_collector.analysis.stats.similarity import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import Metric, SessionReads, TraceContext
from pandaeval_otel.model import Trace

_WHY = {
    Unknown.INCOMPLETE: Why.INCOMPLETE_TRACE,
    Unknown.NOT_CAPTURED: Why.NO_CONTENT,
    Unknown.UNDECIDED: Why.INSUFFICIENT_EVIDENCE,
}


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    found = response(trace, context.end_tokens)
    if found is None:
        return None
    if found.score is None:
        why = Why.NO_CONTENT if found.unknown is None else _WHY[found.unknown]
        return Unscored(why, found.reason)
    if found.ending is None:
        return Score(found.score, found.reason, {"ended_by": found.tool} if found.tool else {})
    metadata: dict[str, object] = {
        "ending": found.ending.value,
        "tool": found.tool or None,
        "error": found.error or None,
    }
    if found.ending in (Ending.UNRECOVERED_TOOL_ERROR, Ending.FALSE_SUCCESS):
        metadata["lost_tool"] = found.tool
    if found.ending is Ending.FALSE_SUCCESS:
        metadata["severity"] = "critical"
    if found.score >= ASKS_ON:
        return Score(found.score, found.reason, metadata, span_ids=found.span_ids)
    return Score(found.score, found.reason, metadata, label=found.ending.value, failed=True, span_ids=found.span_ids)


METRIC = Metric(
    level="trace",
    name="response",
    kind="code",
    version="7",
    threshold=0.5,
    question="Did the run end with an answer, or by declaring its end?",
    needs="a run that ended",
    evaluate=_evaluate,
    reads=SessionReads(later=WINDOW),
    unscored=tuple(_WHY.values()),
)
