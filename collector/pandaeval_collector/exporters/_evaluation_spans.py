"""Evaluation spans: a unit's results as events of one OTLP span.

A failing span is a child of the blamed span, others of the evaluated span. Unsampled units get no span.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import Result, written
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters._fields import fixed64, measured, number_pair, pairs, repeated, sized, tag, text_pair
from pandaeval_collector.exporters._span_summary import Role, SpanFields, encode, link, links, summarise
from pandaeval_collector.exporters.encode import EVENT_ATTRIBUTES, SPAN_ATTRIBUTES, EncodedResult
from pandaeval_otel.wire.own_output import EVENT as EVENT_NAME, evaluation_span_id

_SAMPLED, _HAS_IS_REMOTE, _IS_REMOTE = 0x1, 0x100, 0x200
_SPAN_EVENTS = tag(11)
"""The field ``events`` of the message ``Span``."""
_SPAN_NS = 1_000_000
"""Nanoseconds of an evaluation span. It starts at the evaluated span's end, so waterfalls are not stretched."""
_EVENT_ALIKE = bytes(Span.Event(name=EVENT_NAME).SerializeToString())
_NOTHING_FAILED = pairs({"pandaeval.failed": []})


def spans(
    results: Iterable[EncodedResult],
    shows_failed: bool = True,
    later: Collection[str] = (),
    judged: Collection[str] = (),
    undecided: Collection[str] = (),
) -> list[bytes]:
    """Encode a span for a unit's code results, for a trace's judged results, and for each judged session result.

    ``shows_failed``: failures set status ERROR. Trace IDs: ``later``: sent before, so no verdict; ``judged``: judged
    results were sent before; ``undecided``: no pass yet.
    """
    sampled = [result for result in results if result.result.unit.sampled]
    failed = {result.result.unit.trace_id for result in sampled if result.result.success is False}
    encoded = []
    for group in _groups(sampled):
        role = _role(group, failed, later, judged, undecided)
        members = [result.result for result in group]
        encoded.append(_span(group, members, encode(summarise(members), role, shows_failed)))
    return encoded


def _groups(results: Iterable[EncodedResult]) -> Iterable[list[EncodedResult]]:
    """Group results per span. An explanation joins its failure. A trace's judged results precede its turns'."""
    groups: dict[tuple[str, str], list[EncodedResult]] = {}
    failed: dict[str, tuple[str, str]] = {}
    for encoded in sorted(results, key=_order):
        result, unit = encoded.result, encoded.result.unit
        key = (unit.level, unit.id)
        if _is_judged(result):
            key = ("", result.id if unit.level == "session" else unit.trace_id)
        elif result.success is False and (unit.level == "trace" or unit.trace_id not in failed):
            failed[unit.trace_id] = key
        elif not result.is_verdict and unit.level == "trace":
            key = failed.get(unit.trace_id, key)
        groups.setdefault(key, []).append(encoded)
    return groups.values()


def _order(encoded: EncodedResult) -> tuple[bool, bool, bool]:
    result = encoded.result
    is_judged = _is_judged(result)
    return is_judged, not result.is_verdict, is_judged and result.unit.level == "turn"


def _is_judged(result: Result) -> bool:
    return result.evaluator.kind == "llm" and (isinstance(result.finding, Score) or bool(result.judge))


def _role(
    group: Sequence[EncodedResult],
    failed: Collection[str],
    later: Collection[str],
    judged: Collection[str],
    undecided: Collection[str],
) -> Role:
    unit, is_judged = group[0].result.unit, _is_judged(group[0].result)
    if unit.level == "session":
        return Role(unit.level, "metrics" if is_judged else "level", not is_judged)
    may_pass = unit.trace_id not in undecided and unit.trace_id not in failed
    if is_judged and unit.trace_id not in judged:
        return Role(unit.level, "judged", may_pass)
    if is_judged or unit.level == "turn" or unit.id in later:
        return Role(unit.level, "metrics", False)
    if unit.id in failed and all(encoded.result.success is not False for encoded in group):
        return Role(unit.level, "metrics", False)
    return Role(unit.level, "level", may_pass)


def _span(group: Sequence[EncodedResult], results: Sequence[Result], fields: SpanFields) -> bytes:
    first, unit = group[0], group[0].result.unit
    began, ended = fixed64(unit.end_ns), fixed64(unit.end_ns + _SPAN_NS)
    return b"".join(
        (
            *_place(results, fields.blamed),
            b"\x39",
            began,
            b"\x41",
            ended,
            fields.fields,
            _span_alike(unit.level),
            first.about.span,
            _attributes(first, fields),
            first.about.kind.span,
            *[_event(encoded, ended) for encoded in group],
            *_links(results),
        )
    )


def _place(results: Sequence[Result], blamed: bytes) -> tuple[bytes, ...]:
    unit = results[0].unit
    own_id = evaluation_span_id([result.id for result in results])
    if unit.level == "session":
        return sized(1, _session_trace_id(unit.id)), sized(2, own_id)
    parent = blamed or bytes.fromhex(unit.span_id)
    return sized(1, bytes.fromhex(unit.trace_id)), sized(4, parent), sized(2, own_id)


def _session_trace_id(unit_id: str) -> bytes:
    return hashlib.blake2b(unit_id.encode(), digest_size=16).digest()


def _links(results: Sequence[Result]) -> list[bytes]:
    unit = results[0].unit
    if unit.level != "session":
        return links(results)
    return [link(*map(bytes.fromhex, target.split(":"))) for target in unit.trace_ids]


def _attributes(first: EncodedResult, fields: SpanFields) -> bytes:
    attributes = (*_evaluated_at(first.result.time), *fields.attributes)
    if first.result.unit.level == "session" and _is_judged(first.result):
        return repeated(SPAN_ATTRIBUTES, (*first.about.ids, *first.own, *attributes)) + first.verdict.span
    failing = _NOTHING_FAILED
    if fields.failing:
        failing = pairs({"pandaeval.failed": list(fields.failing)})
    return repeated(SPAN_ATTRIBUTES, (*number_pair("pandaeval.score.min", fields.lowest), *failing, *attributes))


def _event(encoded: EncodedResult, at: bytes) -> bytes:
    about, own = encoded.about, EVENT_ATTRIBUTES + EVENT_ATTRIBUTES.join(encoded.own)
    event = (b"\x09", at, _EVENT_ALIKE, about.event_ids, own, encoded.verdict.event, about.kind.event)
    return _SPAN_EVENTS + measured(b"".join(event))


@lru_cache(maxsize=512)  # a batch has fewer times
def _evaluated_at(time: datetime) -> tuple[bytes, ...]:
    return text_pair("pandaeval.evaluated_at", written(time))


@lru_cache(maxsize=16)
def _span_alike(level: str) -> bytes:
    flags = _SAMPLED | _HAS_IS_REMOTE
    if level != "session":
        flags |= _IS_REMOTE
    span = Span(kind=Span.SpanKind.SPAN_KIND_INTERNAL, flags=flags)
    return bytes(span.SerializeToString())
