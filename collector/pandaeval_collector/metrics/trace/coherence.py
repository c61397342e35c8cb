"""Is the answer about what was asked?

The cosine of the embeddings of a turn's user message and of its answer, clamped to 0..1; of a trace with several turns
the mean. It does not judge whether the answer is right: it does not see a negation, and an echo of the question
scores 1. A short answer that takes up nothing of the question ("Yes, from 10 to 16.", "4") scores low, right or not.
Its scale depends on the embedder, so the default threshold is the embedder's measured best cut where there is a table,
else 0.5; ``metadata.calibrated`` is the value on a scale of its own (0 off topic, 1 on topic). A run that failed or
ended in a tool call has no answer to compare, and of silence there is nothing to say: ``response`` speaks of those.

Source: PandaProbe, trace metrics, *Coherence*.
"""

from __future__ import annotations

from math import fsum

from pandaeval_collector.embedding import Bands
from pandaeval_collector.embedding.plain import plain
from pandaeval_collector.metric import Metric, TraceContext
from pandaeval_collector.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.stats import coherence as topic_similarity
from pandaeval_collector.untrusted.silence import says_something
from pandaeval_otel.model import Trace, Turn


def _texts(trace: Trace) -> list[str]:
    return [
        plain(text) for turn in trace.turns for text in (turn.user, turn.assistant) if text and says_something(text)
    ]


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.forced:
        return Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
    where = context.texts.direction
    pairs = [
        (plain(turn.user), plain(turn.assistant))
        for turn in trace.turns
        if turn.user and turn.assistant and says_something(turn.user) and says_something(turn.assistant)
    ]
    pairs = [(user, answer) for user, answer in pairs if where(user) and where(answer)]
    if not pairs:
        return _nothing(trace)
    values = [topic_similarity(where(user), where(answer)) for user, answer in pairs]
    score = fsum(values) / len(values)
    metadata: dict[str, object] = {"coherence_gap": 1.0 - score}
    if context.texts.bands is not None:
        metadata["calibrated"] = context.texts.bands.calibrated(score)
    if len(trace.turns) > 1:
        metadata["turns"] = len(values)
    if any(text in context.texts.chunked for pair in pairs for text in pair):
        metadata["note"] = "long text: mean of the embeddings of its parts"
    return Score(score, _reason(score, context), metadata)


def _nothing(trace: Trace) -> Finding | None:
    if trace.error is not None or trace.ends_in_tool_call:
        return None  # there is no answer, and ``response`` says so
    if any(turn.user and turn.assistant is not None for turn in trace.turns):
        return Unscored(Why.NO_CONTENT, "question or answer is captured, and says nothing")
    if any(_captured_and_empty(turn) for turn in trace.turns):
        return Assumed("the input is empty; coherence is assumed", {"note": "the input is empty", "coherence_gap": 0.0})
    return Unscored(Why.NO_CONTENT, "no text of input and answer was captured (is content capture switched on?)")


def _captured_and_empty(turn: Turn) -> bool:
    return turn.user == "" and turn.assistant is not None


def _reason(score: float, context: TraceContext) -> str:
    bands = context.texts.bands
    if bands is None:
        return f"cosine of input and answer is {score:.2f}"
    where = "on topic" if score >= bands.on else "off topic" if score < bands.off else "partly on topic"
    return f"answer is {where} (cosine {score:.2f}; this embedder's cut is {bands.cut:.2f})"


def _threshold(bands: Bands | None) -> float:
    return 0.5 if bands is None else bands.cut


METRIC = Metric(
    level="trace",
    name="coherence",
    kind="embedding",
    version="2",
    threshold=_threshold,
    question="Is the answer about what was asked?",
    needs="input and answer text",
    evaluate=_evaluate,
    texts=_texts,
    calibrated="calibrated",
    unscored=(Why.INCOMPLETE_TRACE, Why.NO_CONTENT),
)
