"""Does the agent repeat an earlier answer in the session?

The metric compares the answer with the three previous answers of the same session and root agent. The score is 1 minus
the highest similarity (cosine × Jaccard). It does not detect a loop inside a trace; ``tool_loop`` does.

A repeated answer is ``excused`` (``metadata.excused``) if the user requested it again, extended or challenged it, or
repeated the question. It is also excused if it asks the user to wait, contains new values or words of the question, or
reports new or failed work. An answer that is not excused fails with the label ``loop`` if its similarity is 0.9 or
more, and the similarity of the questions (words only) is below 0.5. Other repeated answers have the label ``suspect``
and fail no run. An error text in place of an answer is no loop. With ``session.loop_signal: raw``, session metrics read
every score.

Source: PandaProbe, trace metrics, *Loop Detection*.
"""

from __future__ import annotations

import re

from pandaeval_collector.analysis.embedding.text import plain
from pandaeval_collector.analysis.rules.error_answers import answers_with_error
from pandaeval_collector.analysis.stats.similarity import (
    DEFAULT_WINDOW as WINDOW,
    OutputComparison,
    jaccard,
    loop_detection,
)
from pandaeval_collector.analysis.stats.topic import STOPWORDS_VERSION, content_tokens
from pandaeval_collector.base.result import EXCUSED, SUSPECT, TOLERANCE
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.scoring.metric import SessionReads, TraceContext, TraceMetric
from pandaeval_otel.model import Trace

_LISTED = 10
LOOP = "loop"
_SAME_ANSWER, _OTHER_QUESTION = 0.9, 0.5
"""Minimum similarity of equal answers, and maximum similarity of different questions."""
_STEM = 5
"""Letters that the forms of a word share, as in upgrading and upgraded."""
_SAME_QUESTION = 0.75
"""Minimum share of common content words of equal questions."""
_ID = re.compile(r"\b(?=[0-9-]{0,40}[A-Z])[A-Z0-9][A-Z0-9-]{4,40}\b")
_ON_HOLD = re.compile(
    r"\b(?:hold on|(?:still )?on hold|(?:please )?(?:wait|hold)|one moment|just a (?:moment|second|minute)|bear with|"
    r"take your time|stay on the line|still (?:checking|working|looking|waiting|processing|here|in progress))\b",
    re.IGNORECASE,
)
_BRIEF, _LONGEST = 200, 20_000
"""Maximum characters of an answer that asks the user to wait, and maximum characters searched for ids."""


def _texts(trace: Trace) -> list[str]:
    # A trace without a session is compared when another trace continues its response.
    if not (trace.output and (trace.session_id or trace.responses)):
        return []
    return [plain(trace.output)] if says_something(trace.output) else []


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.session_id is None:
        return None
    if trace.output is None and (trace.error is not None or trace.ends_in_tool_call):
        return None  # no answer; ``response`` reports it
    if trace.output is None:
        return Unscored(Why.NO_CONTENT, "no answer was captured to compare with earlier ones")
    metadata: dict[str, object] = {"window_size": WINDOW, "max_hybrid": 0.0, "comparisons": []}
    if not says_something(trace.output):
        return Unscored(Why.NO_CONTENT, "the answer is empty or only punctuation")
    text, texts = plain(trace.output), context.texts
    if texts.lost is None and not texts.direction(text):
        return Unscored(Why.NO_CONTENT, "the answer has no words or symbols to compare")
    if not context.earlier:
        return Assumed("this agent has no earlier answer in the session to compare with", metadata)
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
    worst = max(found.comparisons, key=lambda each: each.hybrid_score)
    limit = 1.0 - context.threshold + TOLERANCE
    close = sorted(
        (each for each in found.comparisons if each.hybrid_score > limit), key=lambda each: -each.hybrid_score
    )
    excuses = [_excuse(trace, context, each, here[1]) for each in close]
    loops = [each for each, excuse in zip(close, excuses, strict=True) if not excuse]
    if loops and answers_with_error(trace):
        return None  # an error in place of an answer; ``response`` reports it
    if not close or loops:
        sure = [each for each in loops if _is_sure(context, each)]
        reason = _reason(context, (sure or loops or [worst])[0], "", bool(sure))
        label = SUSPECT if loops else None
        return Score(found.score, reason, metadata, label=LOOP if sure else label, failed=bool(sure))
    metadata[EXCUSED] = excuses[0]
    return Score(found.score, _reason(context, worst, excuses[0], False), metadata, label=EXCUSED)


def _is_sure(context: TraceContext, comparison: OutputComparison) -> bool:
    earlier = context.earlier[comparison.index]
    if comparison.hybrid_score < _SAME_ANSWER or not (context.asked and earlier.asked):
        return False
    return jaccard(context.asked, earlier.asked) < _OTHER_QUESTION


def _excuse(trace: Trace, context: TraceContext, comparison: OutputComparison, words: frozenset[str]) -> str:
    earlier, output = context.earlier[comparison.index], trace.output or ""
    if context.asked_again:
        return "the user asked for it again"
    if context.asked and jaccard(context.asked, earlier.asked) >= _SAME_QUESTION:
        return "the question is the same"
    if len(output) <= _BRIEF and _ON_HOLD.search(output) is not None:
        return "it asks the user to wait"
    if context.changed:
        return "it reports work that was done in between"
    if context.tried:
        return "it reports that a new try failed"
    new = {word for word in words - earlier.tokens if any(map(str.isdigit, word))}
    new |= {each.casefold() for each in _ID.findall(output[:_LONGEST]) if not content_tokens(each) <= earlier.tokens}
    listed = sorted(new)[:_LISTED]
    if listed:
        return f"it contains new values: {', '.join(listed)}"
    stems = {word[:_STEM] for word in context.asked}
    taken_up = sorted(word for word in words - earlier.tokens if word[:_STEM] in stems)
    if taken_up:
        return f"it uses words of the new question: {', '.join(taken_up[:_LISTED])}"
    return ""


def _reason(context: TraceContext, worst: OutputComparison, excuse: str, sure: bool) -> str:
    which = f"the answer of trace {context.earlier[worst.index].index + 1} of this session"
    numbers = f"similarity {worst.cosine_similarity:.2f} × word overlap {worst.jaccard_similarity:.2f}"
    if sure:
        return f"the question is new, but the answer repeats {which} ({numbers})"
    if excuse:
        return f"repeats {which}, but {excuse} ({numbers})"
    if 1.0 - worst.hybrid_score < context.threshold - TOLERANCE:
        return f"repeats {which} ({numbers}); only suspicious, so it does not fail"
    return f"repeats no earlier answer; the most similar is {which} ({numbers})"


METRIC = TraceMetric(
    name="loop_detection",
    kind="embedding",
    version="12",
    threshold=0.5,
    question="Does the agent repeat an earlier answer in the session?",
    needs="answer text and a session ID",
    evaluate=_evaluate,
    texts=_texts,
    reads=SessionReads(earlier=WINDOW, answers=True),
    signal="loop_signal",
    settings={"window": WINDOW, "stopwords": STOPWORDS_VERSION},
    unscored=(Why.NO_CONTENT,),
)
