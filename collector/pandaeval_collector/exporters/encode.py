"""A result as OpenTelemetry says it: the log event ``gen_ai.evaluation.result``, and evaluation spans.

Encoded once, when the result is committed. The SDK cannot give a span an id that follows from its content, nor the
sampled flag; and most of what a result says many others say alike, so its parts are encoded once and put together
(:mod:`pandaeval_collector.exporters._fields`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.exporters._fields import (
    before_number,
    before_text,
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
from pandaeval_collector.exporters._glance import MAX_TEXT, address, glance, link, links
from pandaeval_collector.result import Result, cut, nanoseconds, written
from pandaeval_collector.score import Assumed, Finding, Score, Unscored
from pandaeval_otel.own_output import EVENT as EVENT_NAME
from pandaeval_otel.own_output import span_ids

_FAILED = frozenset({"judge_failed", "invalid_verdict", "timeout", "metric_error"})
"""Whys that mean the evaluation itself failed: reported as ``error.type``."""
_SAMPLED, _HAS_IS_REMOTE, _IS_REMOTE = 0x1, 0x100, 0x200
_LOG_ATTRIBUTES, _SPAN_ATTRIBUTES, _EVENT_ATTRIBUTES, _SPAN_EVENTS = tag(6), tag(9), tag(3), tag(11)
"""Fields in the messages of ``opentelemetry-proto``."""
_SPAN_NS = 1_000_000
"""Length of an evaluation span: it starts where the evaluated span ends, so that no waterfall is stretched."""
_EVENT_ALIKE = bytes(Span.Event(name=EVENT_NAME).SerializeToString())
_BEFORE_SCORE = before_number("gen_ai.evaluation.score.value")
_NOTHING_FAILED = pairs({"pandaeval.failed": []})


@dataclass(slots=True)
class Said:
    """A result with its attributes, encoded once for all surfaces. ``own``: those that no other result has, each behind
    its length; ``about``: what it shares with others of its unit, ``verdict``: with others of its metric."""

    result: Result
    own: Sequence[bytes]
    about: _About
    verdict: _Alike


class _Alike(NamedTuple):
    """Attributes that many results have alike, as fields of a log record, of a span event and of a span."""

    log: bytes
    event: bytes
    span: bytes


class _About(NamedTuple):
    """What results of a unit say alike. ``place``: fields that say in a log record where it belongs; ``ids``: response
    and session, each behind its length, and as fields of a log record (with the address on the page) and of a span
    event; ``span``: session and address as fields of a span; ``kind``: what other units share too."""

    place: bytes
    ids: tuple[bytes, ...]
    log_ids: bytes
    event_ids: bytes
    span: bytes
    kind: _Alike


def said(result: Result, page: str = "") -> Said:
    """All attributes of a result, ready to be put into a log record, a span or a span event. ``page``: address of the
    page that shows it, without a slash at its end; ``""``: none."""
    unit = result.unit
    ids = (unit.trace_id, unit.span_id, unit.response_id, unit.session_id)
    kind = (unit.level, unit.service, unit.agent, unit.environment, unit.trigger, unit.late_spans)
    return Said(result, _own(result), _about(page, *ids, *kind), _verdict(result))


def log_record(each: Said) -> bytes:
    """An OTLP ``LogRecord`` in the context of the evaluated span."""
    result, about = each.result, each.about
    alike = _log_alike(result.why in _FAILED, result.unit.sampled)
    own = _LOG_ATTRIBUTES + _LOG_ATTRIBUTES.join(each.own)
    return b"".join((_log_times(result.time), about.place, alike, about.log_ids, own, each.verdict.log, about.kind.log))


def spans(results: Iterable[Said], shows_failed: bool = True) -> list[bytes]:
    """OTLP ``Span`` bytes: one ``evaluate trace`` (or ``evaluate session``) with an event per result that took no
    model, one ``evaluate {metric}`` per judged result. Units that were not sampled by the application get none.
    ``shows_failed``: whether the status of a span with a failing result is ERROR."""
    sampled = [each for each in results if each.result.unit.sampled]
    inline = [each for each in sampled if each.result.evaluator.kind != "llm"]
    units = itertools.groupby(inline, key=lambda each: (each.result.unit.level, each.result.unit.id))
    found = [_inline_span(list(group), shows_failed) for _, group in units]
    found.extend(_judged_span(each, shows_failed) for each in sampled if each.result.evaluator.kind == "llm")
    return found


def _inline_span(group: Sequence[Said], shows_failed: bool) -> bytes:
    results = [each.result for each in group]
    told = glance(results, results[0].unit.level, False, shows_failed)
    summary = (
        *_evaluated_at(results[0].time),
        *number_pair("pandaeval.score.min", told.lowest),
        *(pairs({"pandaeval.failed": told.failed}) if told.failed else _NOTHING_FAILED),
        *told.attributes,
    )
    return _span(group, told.fields, group[0].about.kind.span + repeated(_SPAN_ATTRIBUTES, summary))


def _judged_span(each: Said, shows_failed: bool) -> bytes:
    result, about = each.result, each.about
    told = glance([result], result.metric, True, shows_failed)
    own = repeated(_SPAN_ATTRIBUTES, (*about.ids, *each.own, *_evaluated_at(result.time), *told.attributes))
    return _span([each], told.fields, own + each.verdict.span + about.kind.span)


def _span(group: Sequence[Said], told: bytes, attributes: bytes) -> bytes:
    """``told``: its name and status."""
    results = [each.result for each in group]
    unit = results[0].unit
    own_trace, own_id = span_ids([result.id for result in results])
    if unit.level == "session":
        place, linked = sized(1, own_trace), [_link(target) for target in unit.trace_ids]
    else:
        place, linked = sized(1, bytes.fromhex(unit.trace_id)) + sized(4, bytes.fromhex(unit.span_id)), links(results)
    began, ended = fixed64(unit.end_ns), fixed64(unit.end_ns + _SPAN_NS)
    events = [_event(ended, each) for each in group]
    alike = _span_alike(unit.level) + group[0].about.span
    return b"".join(
        (place, sized(2, own_id), b"\x39", began, b"\x41", ended, told, alike, attributes, *events, *linked)
    )


def _event(time: bytes, each: Said) -> bytes:
    """As a field of a span. ``time``: nanoseconds as fixed64."""
    about = each.about
    own = _EVENT_ATTRIBUTES + _EVENT_ATTRIBUTES.join(each.own)
    event = b"".join((b"\x09", time, _EVENT_ALIKE, about.event_ids, own, each.verdict.event, about.kind.event))
    return _SPAN_EVENTS + measured(event)


def _link(target: str) -> bytes:
    trace_id, _, span_id = target.partition(":")
    return link(bytes.fromhex(trace_id), bytes.fromhex(span_id))


# Many are concluded at the same time, and a batch has fewer times than are remembered.


@lru_cache(maxsize=512)
def _log_times(time: datetime) -> bytes:
    encoded = fixed64(nanoseconds(time))
    return b"\x09" + encoded + b"\x59" + encoded


@lru_cache(maxsize=512)
def _evaluated_at(time: datetime) -> tuple[bytes, ...]:
    return text_pair("pandaeval.evaluated_at", written(time))


@lru_cache(maxsize=4)
def _log_alike(failed: bool, sampled: bool) -> bytes:
    """What log records say alike."""
    record = LogRecord(
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN if failed else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if failed else "INFO",
        event_name=EVENT_NAME,
        flags=_SAMPLED if sampled else 0,
    )
    return bytes(record.SerializeToString())


@lru_cache(maxsize=16)
def _span_alike(level: str) -> bytes:
    """What spans about units of one level say alike. The parent of a session's span is not somewhere else: it has
    none."""
    flags = _SAMPLED | _HAS_IS_REMOTE | (0 if level == "session" else _IS_REMOTE)
    span = Span(kind=Span.SpanKind.SPAN_KIND_INTERNAL, flags=flags)
    return bytes(span.SerializeToString())


def _own(result: Result) -> list[bytes]:
    """What hardly another result says. ``score.value`` only where something was measured."""
    finding = result.finding
    own = [_BEFORE_SCORE + double(finding.value)] if isinstance(finding, Score) else []
    if finding.reason:
        text = cut(finding.reason, MAX_TEXT).encode()
        own.append(before_text("gen_ai.evaluation.explanation", len(text)) + text)
    id_ = result.id.encode()
    own.append(before_text("pandaeval.result.id", len(id_)) + id_)
    if result.evaluator.kind == "llm":
        own.extend(pairs(_judge(result)))
    if result.unit.level == "trial":
        own.extend(pairs(_trial(finding)))
    if result.run_id is not None:
        of_run = result.run_id.encode()
        own.append(before_text("pandaeval.run.id", len(of_run)) + of_run)
    return own


def _trial(finding: Finding) -> Mapping[str, Any]:
    """The case, and which attempt at it."""
    names = {"case": "pandaeval.case.id", "trial": "pandaeval.trial", "layer": "pandaeval.layer"}
    return {name: finding.metadata.get(key) for key, name in names.items()}


def _judge(result: Result) -> Mapping[str, Any]:
    """What a judge was shown, and what its answers took; nothing where none was asked."""
    about = result.judge
    if not about:
        return {}
    tokens: Mapping[str, int] = about["tokens"]
    return {
        "pandaeval.judge.prompt_version": about["prompt_version"],
        "pandaeval.judge.pack": about["pack"],
        "pandaeval.judge.calls": about["calls"],
        "pandaeval.judge.input_tokens": tokens["input"],
        "pandaeval.judge.output_tokens": tokens["output"],
        "pandaeval.judge.cached_tokens": tokens["cached"],
        "pandaeval.judge.cost_usd": float(about["cost_usd"]),
        "pandaeval.judge.cited": about.get("cited"),
        "pandaeval.judge.truncated": result.finding.metadata.get("truncated"),
    }


def _verdict(result: Result) -> _Alike:
    """What many results say alike: which metric came to which kind of conclusion, and how."""
    finding, by = result.finding, result.evaluator
    coverage = None if isinstance(finding, Assumed) else float(finding.coverage)
    assumed = float(finding.value) if isinstance(finding, Assumed) else None
    threshold = None if result.threshold is None else float(result.threshold)
    passed = None if isinstance(finding, Unscored) else result.success
    outcome, why, label = result.outcome, result.why, result.label
    kind = (by.kind, by.version, by.model, threshold, result.revision, result.final)
    return _verdict_alike(result.metric, *kind, outcome, why, label, passed, coverage, assumed)


@lru_cache(maxsize=4096)
def _verdict_alike(
    metric: str,
    kind: str,
    version: str,
    model: str | None,
    threshold: float | None,
    revision: int,
    final: bool,
    outcome: str,
    why: str | None,
    label: str | None,
    passed: bool | None,
    coverage: float | None,
    assumed: float | None,
) -> _Alike:
    return _alike(
        {
            "gen_ai.evaluation.name": metric,
            "gen_ai.evaluation.score.label": label,
            "error.type": why if why in _FAILED else None,
            "pandaeval.outcome": outcome,
            "pandaeval.why": why,
            "pandaeval.metric.version": version,
            "pandaeval.judge.model": model if kind == "llm" else None,
            "pandaeval.embedder": model if kind == "embedding" else None,
            "pandaeval.revision": revision,
            "pandaeval.final": final,
            "pandaeval.coverage": coverage,
            "pandaeval.threshold": threshold,
            "pandaeval.passed": passed,
            "pandaeval.assumed_value": assumed,
        }
    )


@lru_cache(maxsize=16)
def _about(
    page: str,
    trace_id: str,
    span_id: str,
    response_id: str,
    session_id: str | None,
    level: str,
    service: str,
    agent: str,
    environment: str | None,
    trigger: str,
    late_spans: int,
) -> _About:
    """Results of one unit come one after the other."""
    ids = (*text_pair("gen_ai.response.id", response_id), *text_pair("gen_ai.conversation.id", session_id))
    shown = text_pair("pandaeval.url", address(page, level, trace_id, span_id, session_id))
    return _About(
        sized(9, bytes.fromhex(trace_id)) + sized(10, bytes.fromhex(span_id)),
        ids,
        repeated(_LOG_ATTRIBUTES, ids + shown),
        repeated(_EVENT_ATTRIBUTES, ids),
        repeated(_SPAN_ATTRIBUTES, text_pair("pandaeval.session.id", session_id) + shown),
        _unit_alike(level, service, agent, environment, trigger, late_spans),
    )


@lru_cache(maxsize=4096)
def _unit_alike(level: str, service: str, agent: str, environment: str | None, trigger: str, late_spans: int) -> _Alike:
    return _alike(
        {
            "pandaeval.level": level,
            "pandaeval.service": service,
            "gen_ai.agent.name": agent,
            "deployment.environment.name": environment,
            "pandaeval.trigger": trigger,
            "pandaeval.late_spans": late_spans,
        }
    )


def _alike(facts: Mapping[str, Any]) -> _Alike:
    encoded = pairs(facts)
    return _Alike(
        repeated(_LOG_ATTRIBUTES, encoded), repeated(_EVENT_ATTRIBUTES, encoded), repeated(_SPAN_ATTRIBUTES, encoded)
    )
