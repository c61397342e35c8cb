"""OpenTelemetry attributes of a result, and its log event ``gen_ai.evaluation.result``, encoded once without the
SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.base.score import Assumed, Score, ends
from pandaeval_collector.base.session_ids import sent_id
from pandaeval_collector.exporters._fields import (
    before_number,
    double,
    fixed64,
    pairs,
    repeated,
    sized,
    tag,
    text_pair,
)
from pandaeval_collector.exporters._span_summary import MAX_TEXT
from pandaeval_otel.wire.own_output import EVENT as EVENT_NAME

FAILED = frozenset({"judge_failed", "invalid_verdict", "timeout", "metric_error"})
"""Reasons (``why``) for which the evaluation itself failed: reported as ``error.type``."""
LOG_ATTRIBUTES, SPAN_ATTRIBUTES, EVENT_ATTRIBUTES = tag(6), tag(9), tag(3)
"""The fields ``attributes`` of the messages ``LogRecord``, ``Span`` and ``Span.Event`` of ``opentelemetry-proto``."""
_BEFORE_SCORE = before_number("gen_ai.evaluation.score.value")
_SAMPLED = 0x1
_AS_IN_BROWSERS = "!'()*"
"""Characters that ``encodeURIComponent`` keeps and :func:`quote` would escape."""


@dataclass(slots=True)
class EncodedResult:
    """A result with encoded attributes.

    ``own``: unique. ``about``: shared within its unit. ``verdict``: shared within its metric.
    """

    result: Result
    own: Sequence[bytes]
    about: SharedAttributes
    verdict: Alike


class Alike(NamedTuple):
    """Equal attributes, encoded for a log record, a span event and a span."""

    log: bytes
    event: bytes
    span: bytes


class SharedAttributes(NamedTuple):
    """Attributes shared within a unit.

    ``place``: trace and span of a log record. ``ids``: response and session. ``span``: session and address. ``kind``:
    shared with other units.
    """

    place: bytes
    ids: tuple[bytes, ...]
    log_ids: bytes
    event_ids: bytes
    span: bytes
    kind: Alike


def encode_attributes(results: Sequence[Result], page: str = "") -> list[EncodedResult]:
    """Encode each result's attributes. ``page``: base address without a trailing slash, or ``""``."""
    encoded = []
    for result in results:
        reason, unit = cut(result.finding.reason, MAX_TEXT), result.unit
        ids = (unit.trace_id, unit.span_id, unit.response_id, unit.session_id)
        kind = (unit.level, unit.service, unit.agent, unit.environment, unit.trigger, unit.late_spans)
        finding = result.finding
        # ``score.value`` only if there is a score.
        own: list[bytes] = []
        if isinstance(finding, Score):
            own.append(_BEFORE_SCORE + double(finding.value))
        own.extend(text_pair("gen_ai.evaluation.explanation", reason))
        own.extend(text_pair("pandaeval.result.id", result.id))
        if result.evaluator.kind == "llm" and result.judge:  # a judge answered
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
                "pandaeval.judge.open_question": metadata.get("open_question"),
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
    finding, by = result.finding, result.evaluator
    coverage = assumed = None
    threshold = result.threshold
    if isinstance(finding, Assumed):
        assumed = finding.value
    else:
        coverage = finding.coverage
    if threshold is not None and isinstance(finding, Score) and finding.scale:
        worst, best = ends(finding.scale)
        threshold = (threshold - worst) / (best - worst)
    return _verdict_attributes(
        result.wire_name,
        result.label,
        result.outcome,
        result.why,
        by.version,
        by.kind,
        by.model,
        result.revision,
        result.final,
        coverage,
        threshold,
        result.success,
        assumed,
    )


@lru_cache(maxsize=8192)
def _verdict_attributes(
    metric: str,
    label: str | None,
    outcome: str,
    why: str | None,
    version: str,
    kind: str,
    model: str | None,
    revision: int,
    final: bool,
    coverage: float | None,
    threshold: float | None,
    passed: bool | None,
    assumed: float | None,
) -> Alike:
    facts: dict[str, Any] = {
        "gen_ai.evaluation.name": metric,
        "gen_ai.evaluation.score.label": label,
        "error.type": why if why in FAILED else None,
        "pandaeval.outcome": outcome,
        "pandaeval.why": why,
        "pandaeval.metric.version": version,
        "pandaeval.judge.model": model if kind == "llm" else None,
        "pandaeval.embedder": model if kind == "embedding" else None,
        "pandaeval.revision": revision,
        "pandaeval.final": final,
        "pandaeval.coverage": _double(coverage),
        "pandaeval.threshold": _double(threshold),
        "pandaeval.passed": passed,
        "pandaeval.assumed_value": _double(assumed),
    }
    return _alike(facts)


def _double(value: float | None) -> float | None:
    return None if value is None else float(value)


@lru_cache(maxsize=16)
def _about(
    page: str,
    trace_id: str,
    span_id: str,
    response_id: str,
    session_id: str | None,
    level: str,
    *kind: Any,
) -> SharedAttributes:
    """Encode attributes shared within a unit. Cached, because such results are consecutive."""
    sent = None if session_id is None else sent_id(session_id)
    ids = (*text_pair("gen_ai.response.id", response_id), *text_pair("gen_ai.conversation.id", sent))
    shown = text_pair("pandaeval.url", address(page, level, trace_id, span_id, session_id))
    return SharedAttributes(
        sized(9, bytes.fromhex(trace_id)) + sized(10, bytes.fromhex(span_id)),
        ids,
        repeated(LOG_ATTRIBUTES, ids + shown),
        repeated(EVENT_ATTRIBUTES, ids),
        repeated(SPAN_ATTRIBUTES, text_pair("pandaeval.session.id", sent) + shown),
        _unit_attributes(level, *kind),
    )


@lru_cache(maxsize=1024)
def _unit_attributes(
    level: str, service: str, agent: str, environment: str | None, trigger: str | None, late_spans: int
) -> Alike:
    facts = {
        "pandaeval.level": level,
        "pandaeval.service": service,
        "gen_ai.agent.name": agent,
        "deployment.environment.name": environment,
        "pandaeval.trigger": trigger,
        "pandaeval.late_spans": late_spans,
    }
    return _alike(facts)


def _alike(facts: Mapping[str, Any]) -> Alike:
    encoded = pairs(facts)
    return Alike(
        repeated(LOG_ATTRIBUTES, encoded), repeated(EVENT_ATTRIBUTES, encoded), repeated(SPAN_ATTRIBUTES, encoded)
    )


def log_record(each: EncodedResult) -> bytes:
    """Encode an OTLP ``LogRecord`` in the context of the evaluated span."""
    result, about = each.result, each.about
    alike = _log_alike(result.why in FAILED, result.unit.sampled)
    own = LOG_ATTRIBUTES + LOG_ATTRIBUTES.join(each.own)
    return b"".join(
        (_log_times(result.time_ns), about.place, alike, about.log_ids, own, each.verdict.log, about.kind.log)
    )


@lru_cache(maxsize=512)
def _log_times(time_ns: int) -> bytes:
    encoded = fixed64(time_ns)
    return b"\x09" + encoded + b"\x59" + encoded


@lru_cache(maxsize=4)
def _log_alike(failed: bool, sampled: bool) -> bytes:
    record = LogRecord(
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN if failed else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if failed else "INFO",
        event_name=EVENT_NAME,
        flags=_SAMPLED if sampled else 0,
    )
    return bytes(record.SerializeToString())


def address(page: str, level: str, trace_id: str, span_id: str, session_id: str | None) -> str:
    if not page:
        return ""
    if level == "session":
        return f"{page}/#/session/{quote(session_id or '', safe=_AS_IN_BROWSERS, errors='replace')}"
    return f"{page}/#/trace/{trace_id}?span={span_id}"
