"""A result as OpenTelemetry says it: the log event ``gen_ai.evaluation.result``, and evaluation spans.

Encoded once, when the result is committed, and by hand: the SDK cannot give a span an id that follows from its content,
nor the sampled flag, and encodes again and again what many results have alike
(:mod:`pandaeval_collector.exporters.attributes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import written
from pandaeval_collector.exporters._fields import fixed64, measured, number_pair, pairs, repeated, sized, tag, text_pair
from pandaeval_collector.exporters._glance import Glance, glance, link, links
from pandaeval_collector.exporters.attributes import (
    EVENT_ATTRIBUTES,
    FAILED,
    LOG_ATTRIBUTES,
    SPAN_ATTRIBUTES,
    EncodedResult,
)
from pandaeval_otel.wire.own_output import EVENT as EVENT_NAME
from pandaeval_otel.wire.own_output import span_ids

_SAMPLED, _HAS_IS_REMOTE, _IS_REMOTE = 0x1, 0x100, 0x200
_SPAN_EVENTS = tag(11)
"""The field ``events`` of the message ``Span``."""
_SPAN_NS = 1_000_000
"""Length of an evaluation span: it starts where the evaluated span ends, so that no waterfall is stretched."""
_EVENT_ALIKE = bytes(Span.Event(name=EVENT_NAME).SerializeToString())
_NOTHING_FAILED = pairs({"pandaeval.failed": []})


def log_record(each: EncodedResult) -> bytes:
    """Encodes an OTLP ``LogRecord`` in the context of the evaluated span."""
    result, about = each.result, each.about
    alike = _log_alike(result.why in FAILED, result.unit.sampled)
    own = LOG_ATTRIBUTES + LOG_ATTRIBUTES.join(each.own)
    return b"".join(
        (_log_times(result.time_ns), about.place, alike, about.log_ids, own, each.verdict.log, about.kind.log)
    )


def spans(results: Iterable[EncodedResult], shows_failed: bool = True) -> list[bytes]:
    """Encodes OTLP spans: for each unit one span with an event per result that took no model, and one span per judged
    result. A failing one hangs below the span that it blames, all others below the evaluated span. Units that were not
    sampled by the application get none. ``shows_failed``: whether the status of a span with a failing result is
    ERROR."""
    sampled = [each for each in results if each.result.unit.sampled]
    inline = [each for each in sampled if each.result.evaluator.kind != "llm"]
    units = itertools.groupby(inline, key=lambda each: (each.result.unit.level, each.result.unit.id))
    encoded = []
    for (level, _), group in ((key, list(group)) for key, group in units):
        told = glance([each.result for each in group], level, shows_failed)
        summary = (
            *_evaluated_at(group[0].result.time),
            *number_pair("pandaeval.score.min", told.lowest),
            *(pairs({"pandaeval.failed": told.failed}) if told.failed else _NOTHING_FAILED),
            *told.attributes,
        )
        encoded.append(_span(group, told, group[0].about.kind.span + repeated(SPAN_ATTRIBUTES, summary)))
    for each in sampled:
        result, about = each.result, each.about
        if result.evaluator.kind == "llm":
            told = glance([result], result.metric, shows_failed)
            own = repeated(SPAN_ATTRIBUTES, (*about.ids, *each.own, *_evaluated_at(result.time), *told.attributes))
            encoded.append(_span([each], told, own + each.verdict.span + about.kind.span))
    return encoded


def _span(group: Sequence[EncodedResult], told: Glance, attributes: bytes) -> bytes:
    results = [each.result for each in group]
    unit = results[0].unit
    own_trace, own_id = span_ids([result.id for result in results])
    if unit.level == "session":
        place, linked = sized(1, own_trace), [link(*map(bytes.fromhex, target.split(":"))) for target in unit.trace_ids]
    else:
        parent = told.blamed or bytes.fromhex(unit.span_id)
        place, linked = sized(1, bytes.fromhex(unit.trace_id)) + sized(4, parent), links(results)
    began, ended = fixed64(unit.end_ns), fixed64(unit.end_ns + _SPAN_NS)
    events = []
    for each in group:
        own = EVENT_ATTRIBUTES + EVENT_ATTRIBUTES.join(each.own)
        about, verdict = each.about, each.verdict
        event = (b"\x09", ended, _EVENT_ALIKE, about.event_ids, own, verdict.event, about.kind.event)
        events.append(_SPAN_EVENTS + measured(b"".join(event)))
    alike = _span_alike(unit.level) + group[0].about.span
    return b"".join(
        (place, sized(2, own_id), b"\x39", began, b"\x41", ended, told.fields, alike, attributes, *events, *linked)
    )


# Many results have the same time, and a batch has fewer times than are cached.
@lru_cache(maxsize=512)
def _log_times(time_ns: int) -> bytes:
    encoded = fixed64(time_ns)
    return b"\x09" + encoded + b"\x59" + encoded


@lru_cache(maxsize=512)
def _evaluated_at(time: datetime) -> tuple[bytes, ...]:
    return text_pair("pandaeval.evaluated_at", written(time))


@lru_cache(maxsize=4)
def _log_alike(failed: bool, sampled: bool) -> bytes:
    """Encodes the fields that are the same in all log records."""
    record = LogRecord(
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN if failed else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if failed else "INFO",
        event_name=EVENT_NAME,
        flags=_SAMPLED if sampled else 0,
    )
    return bytes(record.SerializeToString())


@lru_cache(maxsize=16)
def _span_alike(level: str) -> bytes:
    """Encodes the fields that are the same in all spans about units of a level. A session's span is not marked as
    having a parent elsewhere: it has none."""
    flags = _SAMPLED | _HAS_IS_REMOTE | (0 if level == "session" else _IS_REMOTE)
    span = Span(kind=Span.SpanKind.SPAN_KIND_INTERNAL, flags=flags)
    return bytes(span.SerializeToString())
