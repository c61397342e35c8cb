"""Is the answer on topic?

The metric compares the meaning of the user's message with the meaning of the answer (cosine of their embeddings). If a
trace has several turns, the score is the mean. It does not judge whether the answer is right: an answer that only
repeats the question scores 1.

If a message names no subject (yes, thanks, an ID), the metric reads it together with the previous turn. If there is no
previous turn, or if the answer is a bare value, the metric does not apply. Short answers, questions, apologies,
hand-overs and answers that share words with the message are never off topic. Therefore the metric misses answers to a
different question of the same field. An error text in place of an answer is never off topic. Texts in a language that
the embedder does not know are ``insufficient_evidence``. The embedded model knows only English. If fewer than half of
several turns can be read, and these are not off topic, there is no score either.

The default threshold is the best cut that was measured for the embedder, or 0.5 without a measurement. If the embedder
has a table of cosines, ``metadata.calibrated`` is a number from 0 (off topic) to 1 (on topic). A cosine below the
failure cut (.02 for the embedded model) fails with the label ``off_topic``. A cosine between this cut and the threshold
gets the label ``suspect``, which fails no run. Without a failure cut (as for the multilingual model), no run fails.
Without a table, ``metadata.calibration`` states that the embedder has no calibration.

Source: PandaProbe, trace metrics, *Coherence*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.analysis.embedding.text import plain
from pandaeval_collector.analysis.rules.error_answers import answers_with_error
from pandaeval_collector.analysis.stats.similarity import coherence as topic_similarity
from pandaeval_collector.analysis.stats.topic import have_topics, may_be_off_topic
from pandaeval_collector.base.result import SUSPECT
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import say_something, says_something
from pandaeval_collector.scoring.metric import APPLIES, TraceContext, TraceMetric
from pandaeval_collector.scoring.metrics.trace._facts import why_not_captured
from pandaeval_otel.model import Kind, Trace

OFF_TOPIC = "off_topic"
ENOUGH = 0.5
"""Minimum share of turns that the embedder can read."""
MOST_BEFORE = 1000
"""Maximum characters read of each text of the previous turn: the first of the message, the last of the answer."""
_TOLERANCE = 1e-9
"""Tolerance for a score just below its threshold."""


@dataclass(slots=True)
class Pair:
    """A message and its answer for an embedder.

    ``turn``: from 1. ``with_before``: with the previous turn before the message.
    """

    turn: int
    asked: str
    answered: str
    with_before: bool = False


def pairs(trace: Trace) -> list[Pair]:
    """Return the trace's turns in order, without turns that lack a side or a subject."""
    found = []
    for place, turn in enumerate(trace.turns):
        if not say_something(turn.user, turn.assistant):
            continue
        message, answer = plain(turn.user or ""), plain(turn.assistant or "")
        names, has_content = have_topics(message, answer)
        if names:
            found.append(Pair(place + 1, message, answer))
        elif has_content and (before := _turn_before(trace, place)):
            found.append(Pair(place + 1, f"{before}\n{message}", answer, True))
    return found


def _turn_before(trace: Trace, place: int) -> str:
    asked = answered = ""
    if place:
        turn = trace.turns[place - 1]
        asked, answered = turn.user or "", turn.assistant or ""
    else:
        messages = next((span.input for span in trace.spans if span.input and span.kind is not Kind.TOOL), ())
        newest = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
        for message in messages[:newest]:
            if message.role == "user" and message.text:
                asked, answered = message.text, ""
            elif message.role == "assistant" and message.text:
                answered = message.text
    return "\n".join(text for text in (plain(asked)[:MOST_BEFORE], plain(answered)[-MOST_BEFORE:]) if text)


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.forced:
        return Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
    found = pairs(trace)
    if not found:
        return _without_pairs(trace)
    unread = {pair.turn: lack for pair in found if (lack := _lack(pair, context))}
    scored_pairs: list[tuple[Pair, float]] = []
    can_be_read = False
    for pair in found:
        if pair.turn in unread:
            continue
        asked, answered = context.texts.direction(pair.asked), context.texts.direction(pair.answered)
        if asked and answered:
            can_be_read = True
            cosine = topic_similarity(asked, answered)
            if _counts(pair, cosine, context):
                scored_pairs.append((pair, cosine))
    if scored_pairs:
        return _score(trace, context, scored_pairs, unread)
    if unread:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, next(iter(unread.values())))
    if not can_be_read:
        return Unscored(Why.NO_CONTENT, "the embedder finds no words in the question or the answer")
    return _silent("the texts show no different topics (few words, shared words, a consent or a hand-over)")


def _without_pairs(trace: Trace) -> Finding | None:
    if trace.error is not None or trace.blocked or trace.ends_in_tool_call:
        return None  # no answer; ``response`` reports it
    if any(say_something(turn.user, turn.assistant) for turn in trace.turns):
        return _silent("the message or the answer names no topic (a yes, an ID, a value)")
    asked = [turn.user for turn in trace.turns if turn.assistant is not None]
    if any(asked):
        wordless = _sides(trace, says_something) or "one side of each turn"
        return Unscored(Why.NO_CONTENT, f"no words to compare in {wordless}")
    if "" in asked:
        assumed = {"note": "the input is empty", "coherence_gap": 0.0}
        return Assumed("the input is empty; coherence is assumed", assumed)
    missing = _sides(trace, lambda text: text is not None) or "the question or the answer of each turn"
    return Unscored(Why.NO_CONTENT, f"not captured: {missing} ({why_not_captured(trace)})")


def _sides(trace: Trace, has: Callable[[str | None], bool]) -> str:
    """Return the missing sides: the question, the answer or both. A text is missing if ``has`` is false for it."""
    sides = {
        "the question": (trace.input, *(turn.user for turn in trace.turns)),
        "the answer": (trace.output, *(turn.assistant for turn in trace.turns)),
    }
    return " and ".join(side for side, texts in sides.items() if not any(map(has, texts)))


def _lack(pair: Pair, context: TraceContext) -> str:
    texts = context.texts
    for side, text in (("message", pair.asked), ("answer", pair.answered)):
        share = texts.known(text)
        if not share:
            return f"the embedder {texts.embedder} cannot read the {side}: {share.lacks}"
    return ""


def _silent(why: str) -> Unscored:
    return Unscored(Why.INSUFFICIENT_EVIDENCE, f"does not apply: {why}", {APPLIES: False})


def _counts(pair: Pair, cosine: float, context: TraceContext) -> bool:
    if cosine >= min(context.threshold, _threshold(context.texts.bands)) - _TOLERANCE:
        return True
    return may_be_off_topic(pair.asked, pair.answered, unlike=_is_sure(cosine, context))


def _score(
    trace: Trace, context: TraceContext, scored_pairs: list[tuple[Pair, float]], unread: Mapping[int, str]
) -> Finding | None:
    bands = context.texts.bands
    score = fsum(cosine for _, cosine in scored_pairs) / len(scored_pairs)
    label = SUSPECT if score < context.threshold - _TOLERANCE else None
    if label and answers_with_error(trace):
        return None  # an error in place of an answer; ``response`` reports it
    metadata: dict[str, object] = {"coherence_gap": 1.0 - score}
    if bands is None:
        metadata["calibration"] = f"none: embedder {context.texts.embedder} has no calibration"
    else:
        metadata["calibrated"] = bands.calibrated(score)
        if _is_sure(score, context):
            metadata[OFF_TOPIC] = True
    if len(trace.turns) > 1:
        metadata["turns"] = len(scored_pairs)
    if any(pair.with_before for pair, _ in scored_pairs):
        metadata["with_turn_before"] = sum(pair.with_before for pair, _ in scored_pairs)
    if any(text in context.texts.chunked for pair, _ in scored_pairs for text in (pair.asked, pair.answered)):
        metadata["note"] = "long text: mean of the embeddings of its parts"
    fails = _is_sure(score, context)
    reason = _reason(score, context)
    coverage = len(scored_pairs) / (len(scored_pairs) + len(unread))
    if unread:
        reason = f"{reason}; turns not read: {', '.join(map(str, unread))} ({next(iter(unread.values()))})"
    if coverage < ENOUGH and not fails:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"too few turns can be read: {reason}", coverage=coverage)
    return Score(score, reason, metadata, label=OFF_TOPIC if fails else label, failed=fails, coverage=coverage)


def _is_sure(score: float, context: TraceContext) -> bool:
    bands = context.texts.bands
    return bands is not None and score < min(bands.sure, context.threshold - _TOLERANCE)


def _reason(score: float, context: TraceContext) -> str:
    limit, bands = context.threshold, context.texts.bands
    if bands is not None and _is_sure(score, context):
        return f"the answer is off topic (similarity {score:.3f}, below the failure cut {bands.sure:g})"
    digits = 2 if f"{score:.2f}" != f"{limit:.2f}" else 4
    found, least = f"{score:.{digits}f}", f"{limit:.{digits}f}"
    if score >= limit - _TOLERANCE:
        return f"the answer is on topic (similarity {found}, threshold {least})"
    suspect = f"the answer may be off topic (similarity {found}, below the threshold {least})"
    return f"{suspect}; only suspicious, so it does not fail"


def _threshold(bands: Bands | None) -> float:
    return 0.5 if bands is None else bands.cut


METRIC = TraceMetric(
    name="coherence",
    kind="embedding",
    version="10",
    threshold=_threshold,
    question="Is the answer on topic?",
    needs="input and answer text",
    evaluate=_evaluate,
    texts=lambda trace: [text for pair in pairs(trace) for text in (pair.asked, pair.answered)],
    calibrated="calibrated",
    signal="coherence_signal",
    unscored=(Why.INCOMPLETE_TRACE, Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
