"""Checks and splits what a span processor submitted, and finds out which sessions end with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pandaeval_collector.receivers import Submitted
from pandaeval_otel.wire.fragments import MalformedOtlpError, Split
from pandaeval_otel.wire.splitting import split_logs, split_traces


@dataclass(frozen=True, slots=True)
class TakenApart:
    """A submission and its split requests. ``problem``: why it cannot be accepted; ``""`` if it can."""

    submitted: Submitted
    spans: Split
    logs: Split
    problem: str = ""


def take_apart(submitted: Submitted) -> TakenApart:
    """Checks a submission and splits its requests by trace. Never raises: a trace that cannot be read must not cost
    those beside it. It accepts a trace whole or not at all. On any thread."""
    try:
        spans = split_traces(submitted.spans) if submitted.spans else Split([])
        logs = split_logs(submitted.logs) if submitted.logs else Split([])
    except MalformedOtlpError as error:
        return TakenApart(submitted, Split([]), Split([]), f"malformed: {error}")
    problem, fragments = "", (*spans.fragments, *logs.fragments)
    if spans.rejected or logs.rejected:
        problem = f"invalid: {spans.message if spans.rejected else logs.message}"
    elif any(fragment.trace_id != submitted.trace_id for fragment in fragments):
        problem = "invalid: it holds items of another trace"
    elif not (fragments or submitted.session_end or spans.own_output or logs.own_output or logs.ignored or logs.labels):
        problem = "invalid: it holds nothing"
    return TakenApart(submitted, spans, logs, problem)


def added_up(splits: Iterable[Split]) -> Split:
    """Returns one :class:`Split` with the sums of the counts, all labels and no fragments."""
    whole = Split([])
    for split in splits:
        whole.decoded += split.decoded
        whole.own_output += split.own_output
        whole.claimed += split.claimed
        whole.ignored += split.ignored
        whole.rejected += split.rejected
        whole.labels += split.labels
    return whole


def words_of(taken: Iterable[TakenApart]) -> dict[bytes, Submitted]:
    """Returns what applications said about each trace, by trace id. Once one said "complete", that stays true, whatever
    later parts say."""
    words: dict[bytes, Submitted] = {}
    for each in taken:
        known = words.get(each.submitted.trace_id)
        if known is None or known.fragment:
            words[each.submitted.trace_id] = each.submitted
    return words
