"""A result as OpenTelemetry says it: the log event ``gen_ai.evaluation.result``, and evaluation spans.

Encoded once, when the result is committed, and by hand: the SDK cannot give a span an id that follows from its content,
nor the sampled flag, and encodes again and again what many results have alike. Most attributes of a result have the
same values in many others, so they are encoded in parts, and only a result's own part is encoded for it: those of its
unit and those of its metric's verdict are remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import Result, cut_each, written
from pandaeval_collector.base.score import Assumed, Score, Unscored
from pandaeval_collector.exporters._fields import (
    before_number,
    double,
    fixed64,
    measured,
    number_pair,
    pairs,
    repeated,
    sized,
    tag,
    text_pair,
)
from pandaeval_collector.exporters._glance import MAX_TEXT, Glance, address, glance, link, links
from pandaeval_otel.wire.own_output import EVENT as EVENT_NAME
from pandaeval_otel.wire.own_output import span_ids

FAILED = frozenset({"judge_failed", "invalid_verdict", "timeout", "metric_error"})
"""Reasons (``why``) for which the evaluation itself failed: reported as ``error.type``."""
LOG_ATTRIBUTES, SPAN_ATTRIBUTES, EVENT_ATTRIBUTES = tag(6), tag(9), tag(3)
"""The fields ``attributes`` of the messages ``LogRecord``, ``Span`` and ``Span.Event`` of ``opentelemetry-proto``."""
_KEYS = {
    "verdict": (
        *("gen_ai.evaluation.name", "gen_ai.evaluation.score.label", "error.type", "pandaeval.outcome"),
        *("pandaeval.why", "pandaeval.metric.version", "pandaeval.judge.model", "pandaeval.embedder"),
        *("pandaeval.revision", "pandaeval.final", "pandaeval.coverage", "pandaeval.threshold"),
        *("pandaeval.passed", "pandaeval.assumed_value"),
    ),
    "unit": (
        *("pandaeval.level", "pandaeval.service", "gen_ai.agent.name", "deployment.environment.name"),
        *("pandaeval.trigger", "pandaeval.late_spans"),
    ),
}
_BEFORE_SCORE = before_number("gen_ai.evaluation.score.value")


@dataclass(slots=True)
class EncodedResult:
    """A result with its attributes. ``own``: those that no other result has, each behind its length; ``about``: those
    that it shares with others of its unit; ``verdict``: those that it shares with others of its metric."""

    result: Result
    own: Sequence[bytes]
    about: SharedAttributes
    verdict: Alike


class Alike(NamedTuple):
    """The same attributes, encoded as fields of a log record, of a span event and of a span."""

    log: bytes
    event: bytes
    span: bytes


class SharedAttributes(NamedTuple):
    """The attributes that the results of a unit share. ``place``: the trace and span of a log record; ``ids``: response
    and session, each behind its length, and as fields of a log record (with the address on the page) and of a span
    event; ``span``: session and address as fields of a span; ``kind``: those that other units have too."""

    place: bytes
    ids: tuple[bytes, ...]
    log_ids: bytes
    event_ids: bytes
    span: bytes
    kind: Alike


def encode_attributes(results: Sequence[Result], page: str = "") -> list[EncodedResult]:
    """Encodes all attributes of each result, ready to be put into a log record, a span or a span event. ``page``:
    address of the page that shows the results, without a slash at its end; ``""``: none."""
    encoded = []
    reasons = cut_each([result.finding.reason for result in results], MAX_TEXT)
    for result, reason in zip(results, reasons, strict=True):
        unit = result.unit
        ids = (unit.trace_id, unit.span_id, unit.response_id, unit.session_id)
        kind = (unit.level, unit.service, unit.agent, unit.environment, unit.trigger, unit.late_spans)
        finding = result.finding
        # ``score.value`` only where something was measured.
        own = [_BEFORE_SCORE + double(finding.value)] if isinstance(finding, Score) else []
        own.extend(text_pair("gen_ai.evaluation.explanation", reason))
        own.extend(text_pair("pandaeval.result.id", result.id))
        if result.evaluator.kind == "llm" and result.judge:  # a judge was asked
            about, metadata = result.judge, finding.metadata
            tokens: Mapping[str, int] = about["tokens"]
            facts = {
                "pandaeval.judge.prompt_version": about["prompt_version"],
                "pandaeval.judge.pack": about["pack"],
                "pandaeval.judge.calls": about["calls"],
                "pandaeval.judge.input_tokens": tokens["input"],
                "pandaeval.judge.output_tokens": tokens["output"],
                "pandaeval.judge.cached_tokens": tokens["cached"],
                "pandaeval.judge.cost_usd": float(about["cost_usd"]),
                "pandaeval.judge.cited": about.get("cited"),
                "pandaeval.judge.truncated": metadata.get("truncated"),
                "pandaeval.judge.injection_suspected": metadata.get("injection_suspected"),
            }
            own.extend(pairs(facts))
        if result.failure_group:
            own.extend(text_pair("pandaeval.failure.group", result.failure_group))
        if result.run_id:
            own.extend(text_pair("pandaeval.run.id", result.run_id))
        encoded.append(EncodedResult(result, own, _about(page, *ids, *kind), _verdict(result)))
    return encoded


def _verdict(result: Result) -> Alike:
    """Encodes the attributes that many results share: which metric came to which kind of conclusion, and how."""
    finding, by = result.finding, result.evaluator
    return _alike(
        "verdict",
        result.metric,
        result.label,
        result.why if result.why in FAILED else None,
        result.outcome,
        result.why,
        by.version,
        by.model if by.kind == "llm" else None,
        by.model if by.kind == "embedding" else None,
        result.revision,
        result.final,
        None if isinstance(finding, Assumed) else float(finding.coverage),
        None if result.threshold is None else float(result.threshold),
        None if isinstance(finding, Unscored) else result.success,
        float(finding.value) if isinstance(finding, Assumed) else None,
    )


@lru_cache(maxsize=16)
def _about(
    page: str,
    trace_id: str,
    span_id: str,
    response_id: str,
    session_id: str | None,
    level: str,
    *others: str | int | None,
) -> SharedAttributes:
    """Encodes what results of a unit share; cached, since they come one after the other."""
    ids = (*text_pair("gen_ai.response.id", response_id), *text_pair("gen_ai.conversation.id", session_id))
    shown = text_pair("pandaeval.url", address(page, level, trace_id, span_id, session_id))
    return SharedAttributes(
        sized(9, bytes.fromhex(trace_id)) + sized(10, bytes.fromhex(span_id)),
        ids,
        repeated(LOG_ATTRIBUTES, ids + shown),
        repeated(EVENT_ATTRIBUTES, ids),
        repeated(SPAN_ATTRIBUTES, text_pair("pandaeval.session.id", session_id) + shown),
        _alike("unit", level, *others),
    )


@lru_cache(maxsize=8192)
def _alike(about: str, *values: str | float | None) -> Alike:
    encoded = pairs(dict(zip(_KEYS[about], values, strict=True)))
    return Alike(
        repeated(LOG_ATTRIBUTES, encoded), repeated(EVENT_ATTRIBUTES, encoded), repeated(SPAN_ATTRIBUTES, encoded)
    )


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


def spans(
    results: Iterable[EncodedResult],
    shows_failed: bool = True,
    later: Collection[str] = (),
    judged: Collection[str] = (),
    undecided: Collection[str] = (),
) -> list[bytes]:
    """Encodes OTLP spans: for each unit one span with an event per result that took no model, for each trace one with
    an event per result of a judge about it and its turns, and one per judged result of a session. A failing one hangs
    below the span that it blames, all others below the evaluated span. Units that were not sampled by the application
    get none. ``shows_failed``: whether the status of a span with a failing result is ERROR; ``later``: ids of traces of
    which other results left before, so that these alone give no verdict; ``judged``: of those of which judged ones
    did, so that what comes late is named by its metrics; ``undecided``: of those that do not pass yet, as a judge is
    still to be asked, or not any more, as they failed before."""
    sampled = [each for each in results if each.result.unit.sampled]
    failed = {each.result.unit.trace_id for each in sampled if each.result.success is False}
    encoded = []
    for group in _parts(sampled):
        first, about, unit = group[0].result, group[0].about, group[0].result.unit
        is_judged = _is_judged(first)
        fails = any(each.result.success is False for each in group)
        is_part = is_judged or unit.level == "turn" or (unit.level == "trace" and unit.id in later)
        is_part = is_part or (unit.level == "trace" and unit.id in failed and not fails)
        whole = "judged" if is_judged and unit.level != "session" and unit.trace_id not in judged else ""
        passes = bool(whole) if is_part else True
        if unit.level != "session" and (unit.trace_id in undecided or unit.trace_id in failed):
            passes = False
        told = glance([each.result for each in group], unit.level, shows_failed, is_part, whole, passes)
        attributes = (*_evaluated_at(first.time), *told.attributes)
        if is_judged and unit.level == "session":
            own = repeated(SPAN_ATTRIBUTES, (*about.ids, *group[0].own, *attributes)) + group[0].verdict.span
        else:
            names = pairs({"pandaeval.failed": told.failed}) if told.failed else _NOTHING_FAILED
            own = repeated(SPAN_ATTRIBUTES, (*number_pair("pandaeval.score.min", told.lowest), *names, *attributes))
        encoded.append(_span(group, told, own + about.kind.span))
    return encoded


def _parts(results: Iterable[EncodedResult]) -> Iterable[list[EncodedResult]]:
    """Returns the results of each span. What explains a failure goes with it, be it that of a turn; judged results of a
    trace stand before those of its turns."""
    parts: dict[tuple[str, str], list[EncodedResult]] = {}
    failed: dict[str, tuple[str, str]] = {}
    for each in sorted(results, key=_place):
        result, unit = each.result, each.result.unit
        key = (unit.level, unit.id)
        if _is_judged(result):
            key = ("", result.id if unit.level == "session" else unit.trace_id)
        elif result.success is False and (unit.level == "trace" or unit.trace_id not in failed):
            failed[unit.trace_id] = key
        elif not result.is_verdict and unit.level == "trace":
            key = failed.get(unit.trace_id, key)
        parts.setdefault(key, []).append(each)
    return parts.values()


def _is_judged(result: Result) -> bool:
    """Returns whether a judge had a part in a result: not in what code said in its place, before one was asked."""
    return result.evaluator.kind == "llm" and (isinstance(result.finding, Score) or bool(result.judge))


def _place(each: EncodedResult) -> tuple[bool, bool, bool]:
    is_judged = _is_judged(each.result)
    return is_judged, not each.result.is_verdict, is_judged and each.result.unit.level == "turn"


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
