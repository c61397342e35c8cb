"""A result as OpenTelemetry says it: the log event ``gen_ai.evaluation.result``, and evaluation spans.

Encoded once, when the result is committed, by ``opentelemetry-proto`` itself: the SDK cannot give a span an id that
follows from its content, nor the sampled flag.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.result import Result, Unit
from pandaeval_collector.score import Assumed, Score, Unscored

EVENT_NAME = "gen_ai.evaluation.result"
_FAILED = frozenset({"judge_failed", "invalid_verdict", "timeout", "metric_error"})
"""Whys that mean the evaluation itself failed: reported as ``error.type``."""
_SAMPLED, _HAS_IS_REMOTE, _IS_REMOTE = 0x1, 0x100, 0x200
_INTERNAL = Span.SpanKind.SPAN_KIND_INTERNAL
_INFO, _WARN = SeverityNumber.SEVERITY_NUMBER_INFO, SeverityNumber.SEVERITY_NUMBER_WARN
_SPAN_NS = 1_000_000
"""Length of an evaluation span: it starts where the evaluated span ends, so that no waterfall is stretched."""
MAX_TEXT = 2000
"""Longer explanations are cut: Tempo keeps 2,048 bytes of an attribute."""


@dataclass(frozen=True, slots=True)
class Said:
    """A result with its attributes, encoded once for all surfaces, each behind its length."""

    result: Result
    pairs: tuple[bytes, ...]


def said(result: Result) -> Said:
    """All attributes of a result, ready to be put into a log record, a span or a span event."""
    return Said(result, _pairs(_own(result)) + _verdict(result) + _of_unit(result.unit))


def log_record(each: Said) -> bytes:
    """An OTLP ``LogRecord`` in the context of the evaluated span."""
    result, unit = each.result, each.result.unit
    failed, time_ns = result.why in _FAILED, result.time_ns
    record = LogRecord(
        time_unix_nano=time_ns,
        observed_time_unix_nano=time_ns,
        severity_number=_WARN if failed else _INFO,
        severity_text="WARN" if failed else "INFO",
        event_name=EVENT_NAME,
        trace_id=bytes.fromhex(unit.trace_id),
        span_id=bytes.fromhex(unit.span_id),
        flags=_SAMPLED if unit.sampled else 0,
    )
    return record.SerializeToString() + _repeated(_LOG_ATTRIBUTES, each.pairs)


def spans(results: Iterable[Said]) -> list[bytes]:
    """OTLP ``Span`` bytes: one ``evaluate trace`` (or ``evaluate session``) with an event per result that took no
    model, one ``evaluate {metric}`` per judged result. Units that were not sampled by the application get none."""
    sampled = [each for each in results if each.result.unit.sampled]
    inline = [each for each in sampled if each.result.evaluator.kind != "llm"]
    units = itertools.groupby(inline, key=lambda each: (each.result.unit.level, each.result.unit.id))
    found = [_inline_span(list(group)) for _, group in units]
    found.extend(_judged_span(each) for each in sampled if each.result.evaluator.kind == "llm")
    return found


def _inline_span(group: Sequence[Said]) -> bytes:
    results = [each.result for each in group]
    scores = [r.score for r in results if isinstance(r.finding, Score) and r.score is not None]
    summary = {
        "pandaeval.evaluated_at": results[0].time.isoformat(),
        "pandaeval.score.min": min(scores, default=None),
        "pandaeval.failed": [r.metric for r in results if r.success is False],
    }
    return _span(group, results[0].unit.level, _of_unit(results[0].unit) + _pairs(summary))


def _judged_span(each: Said) -> bytes:
    evaluated_at = _pairs({"pandaeval.evaluated_at": each.result.time.isoformat()})
    return _span([each], each.result.metric, each.pairs + evaluated_at)


def _span(group: Sequence[Said], what: str, pairs: tuple[bytes, ...]) -> bytes:
    results, unit = [each.result for each in group], group[0].result.unit
    own = hashlib.blake2b(".".join(result.id for result in results).encode(), digest_size=24).digest()
    span = Span(
        span_id=own[16:],
        name=f"evaluate {what}",
        kind=_INTERNAL,
        start_time_unix_nano=unit.end_ns,
        end_time_unix_nano=unit.end_ns + _SPAN_NS,
    )
    if unit.level == "session":
        span.trace_id, span.flags = own[:16], _SAMPLED | _HAS_IS_REMOTE
        span.links.extend(_link(target) for target in unit.trace_ids)
    else:
        span.trace_id, span.parent_span_id = bytes.fromhex(unit.trace_id), bytes.fromhex(unit.span_id)
        span.flags = _SAMPLED | _HAS_IS_REMOTE | _IS_REMOTE
    events = [_event(each) for each in group]
    return span.SerializeToString() + _repeated(_SPAN_ATTRIBUTES, pairs) + _repeated(_SPAN_EVENTS, events)


def _event(each: Said) -> bytes:
    event = Span.Event(name=EVENT_NAME, time_unix_nano=each.result.unit.end_ns + _SPAN_NS)
    encoded = event.SerializeToString() + _repeated(_EVENT_ATTRIBUTES, each.pairs)
    return _varint(len(encoded)) + encoded


def _link(target: str) -> Span.Link:
    trace_id, _, span_id = target.partition(":")
    return Span.Link(trace_id=bytes.fromhex(trace_id), span_id=bytes.fromhex(span_id), flags=_SAMPLED)


def _own(result: Result) -> dict[str, Any]:
    """What no other result says. ``score.value`` only where something was measured."""
    finding = result.finding
    return {
        "gen_ai.evaluation.score.value": float(finding.value) if isinstance(finding, Score) else None,
        "gen_ai.evaluation.explanation": _cut(finding.reason),
        "gen_ai.response.id": result.unit.response_id,
        "gen_ai.conversation.id": result.unit.session_id,
        "pandaeval.result.id": result.id,
    }


def _verdict(result: Result) -> tuple[bytes, ...]:
    """What many results say alike: which metric came to which kind of conclusion, and how."""
    finding, by = result.finding, result.evaluator
    coverage = None if isinstance(finding, Assumed) else float(finding.coverage)
    assumed = float(finding.value) if isinstance(finding, Assumed) else None
    threshold = None if result.threshold is None else float(result.threshold)
    passed = None if isinstance(finding, Unscored) else result.success
    outcome, why, label = result.outcome, result.why, result.label
    kind = (by.kind, by.version, by.model, threshold, result.revision, result.final)
    return _verdict_pairs(result.metric, *kind, outcome, why, label, passed, coverage, assumed)


@lru_cache(maxsize=4096)
def _verdict_pairs(
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
) -> tuple[bytes, ...]:
    return _pairs(
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


def _of_unit(unit: Unit) -> tuple[bytes, ...]:
    """What results of one unit share."""
    return _unit_pairs(unit.level, unit.service, unit.agent, unit.environment, unit.trigger, unit.late_spans)


@lru_cache(maxsize=4096)
def _unit_pairs(
    level: str, service: str, agent: str, environment: str | None, trigger: str, late_spans: int
) -> tuple[bytes, ...]:
    return _pairs(
        {
            "pandaeval.level": level,
            "pandaeval.service": service,
            "gen_ai.agent.name": agent,
            "deployment.environment.name": environment,
            "pandaeval.trigger": trigger,
            "pandaeval.late_spans": late_spans,
        }
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


_LOG_ATTRIBUTES, _SPAN_ATTRIBUTES, _EVENT_ATTRIBUTES, _SPAN_EVENTS = 6, 9, 3, 11


def _repeated(number: int, items: Sequence[bytes]) -> bytes:
    """A repeated field of encoded messages, each behind its length; to be put behind the other fields (protobuf
    messages may be joined)."""
    tag = bytes((number << 3 | 2,))
    return tag + tag.join(items) if items else b""


@lru_cache(maxsize=4096)
def _varint(size: int) -> bytes:
    encoded = bytearray()
    while size > 0x7F:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)


def _pairs(facts: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Encoded attributes, each behind its length. What has no value is left out; an empty list is a value, an empty
    text is not."""
    return tuple([_pair(key, value) for key, value in facts.items() if value is not None and value != ""])


def _pair(key: str, value: Any) -> bytes:
    encoded = KeyValue(key=key, value=_value(value)).SerializeToString()
    return _varint(len(encoded)) + encoded


def _value(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=[_value(item) for item in value]))
        case _:
            return AnyValue(string_value=str(value))
