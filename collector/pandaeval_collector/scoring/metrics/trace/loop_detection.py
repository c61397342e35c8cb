"""Does the agent repeat itself across the traces of a session?

1 - the greatest (cosine × Jaccard) of this trace's answer with the newest three earlier answers of the same session and
root agent. Both factors must be high: talking about the same thing is no loop, saying it again in the same words is.
It does not see a loop inside one trace; that is ``tool_loop``. An answer in the words of an earlier one that brings new
values (another total, another flight) is an update: the score stays the source's, and the session sees 0.5 at worst
(``metadata.session_signal``).

Source: PandaProbe, trace metrics, *Loop Detection*.
"""

from __future__ import annotations

from pandaeval_collector.analysis.embedding.plain import plain
from pandaeval_collector.analysis.stats import loop_detection
from pandaeval_collector.analysis.stats.loops import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.analysis.stats.loops import OutputComparison
from pandaeval_collector.analysis.stats.tokens import STOPWORDS_VERSION
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.scoring.metric import EarlierOutput, Metric, TraceContext
from pandaeval_otel.model import Trace

_UPDATE = 0.5
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
    worst = max(found.comparisons, key=lambda comparison: comparison.hybrid_score)
    if found.score < _UPDATE and (new := _new_values(here[1], context.earlier[worst.index])):
        metadata |= {"new_values": new, "session_signal": _UPDATE}
    return Score(found.score, _reason(context, worst), metadata)


def _reason(context: TraceContext, worst: OutputComparison) -> str:
    """What was found in words; the numbers that it rests on in parentheses."""
    which = f"the answer of trace {context.earlier[worst.index].index + 1} of the session"
    numbers = f"cosine {worst.cosine_similarity:.2f} × word overlap {worst.jaccard_similarity:.2f}"
    if 1.0 - worst.hybrid_score < context.threshold:
        return f"says again what {which} said ({numbers})"
    return f"does not repeat earlier answers; closest is {which} ({numbers})"


def _new_values(words: frozenset[str], closest: EarlierOutput) -> list[str]:
    """What of an answer holds a digit and was not in the earlier one that it is closest to; a few of them."""
    return sorted(word for word in words - closest.tokens if any(sign.isdigit() for sign in word))[:_LISTED]


METRIC = Metric(
    level="trace",
    name="loop_detection",
    kind="embedding",
    version="4",
    threshold=0.5,
    question="Does the agent say again what it said earlier in the session?",
    needs="answer text, session id",
    evaluate=_evaluate,
    texts=_texts,
    needs_session=True,
    settings={"window": WINDOW, "stopwords": STOPWORDS_VERSION},
    unscored=(Why.NO_CONTENT,),
)
