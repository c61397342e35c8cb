"""Does the agent repeat itself across the traces of a session?

1 - the greatest (cosine × Jaccard) of this trace's answer with the newest three earlier answers of the same session and
root agent. Both factors must be high: talking about the same thing is no loop, saying it again in the same words is.
It does not see a loop inside one trace; that is ``tool_loop``. What the user asked to hear again, or in a second
version, with something added ("also …") or in spite of the answer ("is there any way …"), and an answer in the words of
an earlier one that brings new values (another total, another flight) is no loop: such a comparison counts 0.5 at worst
(``metadata.excused``), and ``max_hybrid`` says what the source's score would be.

Source: PandaProbe, trace metrics, *Loop Detection*.
"""

from __future__ import annotations

from pandaeval_collector.analysis.embedding.text import plain
from pandaeval_collector.analysis.stats.similarity import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.analysis.stats.similarity import OutputComparison, loop_detection
from pandaeval_collector.analysis.stats.topic import STOPWORDS_VERSION
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.scoring.metric import Metric, SessionReads, TraceContext
from pandaeval_otel.model import Trace

_EXCUSED = 0.5
"""The most that a repeat counts if it was asked for, or brings new values."""
_LISTED = 10


def _texts(trace: Trace) -> list[str]:
    # A trace without a session is compared once another one goes on from its response.
    if not (trace.output and (trace.session_id or trace.responses)):
        return []
    return [plain(trace.output)] if says_something(trace.output) else []


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.session_id is None:
        return None
    if trace.output is None and (trace.error is not None or trace.ends_in_tool_call):
        return None  # there is no answer, and ``response`` says so
    if trace.output is None:
        return Unscored(Why.NO_CONTENT, "no answer was captured to compare with earlier ones")
    metadata: dict[str, object] = {"window_size": WINDOW, "max_hybrid": 0.0, "comparisons": []}
    if not says_something(trace.output):
        return Unscored(Why.NO_CONTENT, "the answer says nothing: there is nothing to compare")
    text, texts = plain(trace.output), context.texts
    if texts.lost is None and not texts.direction(text):
        return Unscored(Why.NO_CONTENT, "the answer has no words or signs that can be compared")
    if not context.earlier:
        return Assumed("no earlier answer of this agent in the session that this one could be compared with", metadata)
    here = texts.direction(text), texts.words(text)
    found = loop_detection(here, context.earlier, window=WINDOW)
    metadata["max_hybrid"] = found.max_hybrid
    metadata["comparisons"] = [
        {
            "trace_index": context.earlier[comparison.index].index,
            "trace_id": context.earlier[comparison.index].trace_id,
            "cosine_similarity": comparison.cosine_similarity,
            "jaccard_similarity": comparison.jaccard_similarity,
            "hybrid_score": comparison.hybrid_score,
        }
        for comparison in found.comparisons
    ]
    excuses: dict[int, str] = {}
    """Why an answer so close to an earlier one is no loop; empty if it is one, or not so close."""
    for each in found.comparisons:
        known = context.earlier[each.index].tokens
        new = sorted(word for word in here[1] - known if any(sign.isdigit() for sign in word))[:_LISTED]
        excuses[each.index] = ""
        if each.hybrid_score > _EXCUSED and context.asked_again:
            excuses[each.index] = "the user asked for it again"
        elif each.hybrid_score > _EXCUSED and new:
            excuses[each.index] = f"it brings new values: {', '.join(new)}"
    counted = {
        each.index: min(each.hybrid_score, _EXCUSED if excuses[each.index] else 1.0) for each in found.comparisons
    }
    worst = max(found.comparisons, key=lambda each: (counted[each.index], each.hybrid_score))
    if excuses[worst.index]:
        metadata["excused"] = excuses[worst.index]
    return Score(1.0 - counted[worst.index], _reason(context, worst, excuses[worst.index]), metadata)


def _reason(context: TraceContext, worst: OutputComparison, excuse: str) -> str:
    """Writes what was found, with the numbers that it rests on in parentheses."""
    which = f"the answer of trace {context.earlier[worst.index].index + 1} of the session"
    numbers = f"cosine {worst.cosine_similarity:.2f} × word overlap {worst.jaccard_similarity:.2f}"
    if excuse:
        return f"in the words of {which}, but {excuse} ({numbers})"
    if 1.0 - worst.hybrid_score < context.threshold:
        return f"says again what {which} said ({numbers})"
    return f"does not repeat earlier answers; closest is {which} ({numbers})"


METRIC = Metric(
    level="trace",
    name="loop_detection",
    kind="embedding",
    version="6",
    threshold=0.5,
    question="Does the agent say again what it said earlier in the session?",
    needs="answer text, session id",
    evaluate=_evaluate,
    texts=_texts,
    reads=SessionReads(earlier=WINDOW, answers=True),
    settings={"window": WINDOW, "stopwords": STOPWORDS_VERSION},
    unscored=(Why.NO_CONTENT,),
)
