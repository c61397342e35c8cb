"""A result as OpenTelemetry says it: the log event ``gen_ai.evaluation.result``, and evaluation spans.

Encoded once, when the result is committed, by ``opentelemetry-proto`` itself: the SDK cannot give a span an id that
follows from its content, nor the sampled flag.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
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
_SPAN_NS = 1_000_000
"""Length of an evaluation span: it starts where the evaluated span ends, so that no waterfall is stretched."""
MAX_TEXT = 2000
"""Longer explanations are cut: Tempo keeps 2,048 bytes of an attribute."""


def log_record(result: Result) -> bytes:
    """An OTLP ``LogRecord`` in the context of the evaluated span."""
    unit = result.unit
    time_ns = int(result.time.timestamp() * 1e9)
    failed = result.why in _FAILED
    record = LogRecord(
        time_unix_nano=time_ns,
        observed_time_unix_nano=time_ns,
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN if failed else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if failed else "INFO",
        event_name=EVENT_NAME,
        trace_id=bytes.fromhex(unit.trace_id),
        span_id=bytes.fromhex(unit.span_id),
        flags=_SAMPLED if unit.sampled else 0,
        attributes=_pairs({**evaluation(result), **context(result)}),
    )
    return record.SerializeToString()


def spans(results: Iterable[Result]) -> list[bytes]:
    """OTLP ``Span`` bytes: one ``evaluate trace`` (or ``evaluate session``) with an event per result that took no
    model, one ``evaluate {metric}`` per judged result. Units that were not sampled by the application get none."""
    found: list[bytes] = []
    seen = [result for result in results if result.unit.sampled]
    inline = [result for result in seen if result.evaluator.kind != "llm"]
    for _, group in itertools.groupby(inline, key=lambda result: (result.unit.level, result.unit.id)):
        found.append(_span(list(group), None))
    found.extend(_span([result], result.metric) for result in seen if result.evaluator.kind == "llm")
    return found


def _span(results: Sequence[Result], metric: str | None) -> bytes:
    unit = results[0].unit
    scores = [r.score for r in results if isinstance(r.finding, Score) and r.score is not None]
    facts: dict[str, Any] = {**unit_context(unit), "pandaeval.evaluated_at": results[0].time.isoformat()}
    if metric is None:
        facts["pandaeval.score.min"] = min(scores, default=None)
        facts["pandaeval.failed"] = [r.metric for r in results if r.success is False]
    else:
        facts |= {**evaluation(results[0]), **context(results[0])}
    own = hashlib.blake2b(".".join(result.id for result in results).encode(), digest_size=24).digest()
    span = Span(
        span_id=own[16:],
        name=f"evaluate {metric or unit.level}",
        kind=Span.SpanKind.SPAN_KIND_INTERNAL,
        start_time_unix_nano=unit.end_ns,
        end_time_unix_nano=unit.end_ns + _SPAN_NS,
        attributes=_pairs(facts),
        events=[
            Span.Event(
                name=EVENT_NAME,
                time_unix_nano=unit.end_ns + _SPAN_NS,
                attributes=_pairs({**evaluation(result), **context(result)}),
            )
            for result in results
        ],
    )
    if unit.level == "session":
        span.trace_id, span.flags = own[:16], _SAMPLED | _HAS_IS_REMOTE
        span.links.extend(_link(target) for target in unit.trace_ids)
    else:
        span.trace_id, span.parent_span_id = bytes.fromhex(unit.trace_id), bytes.fromhex(unit.span_id)
        span.flags = _SAMPLED | _HAS_IS_REMOTE | _IS_REMOTE
    return span.SerializeToString()


def _link(target: str) -> Span.Link:
    trace_id, _, span_id = target.partition(":")
    return Span.Link(trace_id=bytes.fromhex(trace_id), span_id=bytes.fromhex(span_id), flags=_SAMPLED)


def evaluation(result: Result) -> dict[str, Any]:
    """The standard's own attributes. ``score.value`` only where something was measured."""
    finding = result.finding
    facts: dict[str, Any] = {
        "gen_ai.evaluation.name": result.metric,
        "gen_ai.evaluation.score.value": float(finding.value) if isinstance(finding, Score) else None,
        "gen_ai.evaluation.score.label": result.label,
        "gen_ai.evaluation.explanation": _cut(finding.reason),
        "gen_ai.response.id": result.unit.response_id,
        "gen_ai.conversation.id": result.unit.session_id,
    }
    if result.why in _FAILED:
        facts["error.type"] = result.why
    return facts


def context(result: Result) -> dict[str, Any]:
    """What we add: everything needed to tell this result from another, and why it came to be."""
    finding = result.finding
    judged = result.evaluator.kind == "llm"
    embedded = result.evaluator.kind == "embedding"
    return {
        **unit_context(result.unit),
        "pandaeval.outcome": result.outcome,
        "pandaeval.why": result.why,
        "pandaeval.metric.version": result.evaluator.version,
        "pandaeval.judge.model": result.evaluator.model if judged else None,
        "pandaeval.embedder": result.evaluator.model if embedded else None,
        "pandaeval.revision": result.revision,
        "pandaeval.final": result.final,
        "pandaeval.coverage": None if isinstance(finding, Assumed) else float(finding.coverage),
        "pandaeval.result.id": result.id,
        "pandaeval.threshold": None if result.threshold is None else float(result.threshold),
        "pandaeval.passed": None if isinstance(finding, Unscored) else result.success,
        "pandaeval.assumed_value": float(finding.value) if isinstance(finding, Assumed) else None,
    }


def unit_context(unit: Unit) -> dict[str, Any]:
    """What results of one unit share."""
    return {
        "pandaeval.level": unit.level,
        "pandaeval.service": unit.service,
        "gen_ai.agent.name": unit.agent,
        "deployment.environment.name": unit.environment,
        "pandaeval.trigger": unit.trigger,
        "pandaeval.late_spans": unit.late_spans,
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _pairs(facts: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes without those that have no value; an empty list is a value, an empty text is not."""
    return [KeyValue(key=key, value=_value(value)) for key, value in facts.items() if value is not None and value != ""]


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
