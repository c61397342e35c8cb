"""OTLP messages of a trace, with changeable texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_otel.model import Trace
from pandaeval_otel.wire.decode import value

Change = Callable[[Any], Any]
"""Returns the replacement of a value, or the same object for no change."""
_MOST_NESTED = 8


class RawTrace:
    """A mutable copy of a trace's messages.

    ``touched``: hex ids of changed or added spans.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts: list[tuple[bool, Any]] = [
            (logs, (ExportLogsServiceRequest if logs else ExportTraceServiceRequest).FromString(data))
            for logs, data in parts
        ]
        self.touched: set[str] = set()

    def parts(self) -> list[Part]:
        return [(logs, message.SerializeToString()) for logs, message in self._parts if any(_held(logs, message))]

    def read(self) -> Trace | None:
        """Return the trace as dialects read it after the changes; ``None`` without spans."""
        parts = self.parts()
        return rebuilt(parts).trace if parts else None

    def spans(self) -> list[Span]:
        spans = (span for held in self._holders(logs=False) for span in held)
        return sorted(spans, key=lambda span: span.start_time_unix_nano)

    def span(self, span_id: str) -> Span | None:
        return next((span for span in self.spans() if span.span_id.hex() == span_id), None)

    def rewrite(self, change: Change) -> None:
        """Replace values by ``change``."""
        for item in self.items():
            if sum([_rewrite(each, change) for each in _values(item)]):
                self.touched.add(item.span_id.hex())

    def repeat(self, span_ids: Collection[str], times: int, change: Callable[[int, Any], Any]) -> None:
        """Add copies of spans after the last, with new ids; later spans move.

        ``change``: replaces values, given the copy's number.
        """
        chosen = [span for span in self.spans() if span.span_id.hex() in span_ids]
        end = max(span.end_time_unix_nano for span in chosen)
        length = max(end - chosen[0].start_time_unix_nano, 1)
        for span in self.spans():
            if span not in chosen and span.start_time_unix_nano >= end:
                span.start_time_unix_nano += times * length
            if span not in chosen and span.end_time_unix_nano >= end:
                span.end_time_unix_nano += times * length
        for held in self._holders(logs=False):
            for original in [span for span in held if span.span_id.hex() in span_ids]:
                for number in range(1, times + 1):
                    held.append(self._copied(original, number, number * length, span_ids, change))

    def _copied(
        self, span: Span, number: int, later: int, group: Collection[str], change: Callable[[int, Any], Any]
    ) -> Span:
        made = Span()
        made.CopyFrom(span)
        made.span_id = _other_id(span.span_id, number)
        if span.parent_span_id.hex() in group:
            made.parent_span_id = _other_id(span.parent_span_id, number)
        made.start_time_unix_nano += later
        made.end_time_unix_nano += later
        for each in _values(made):
            _rewrite(each, lambda held: change(number, held))
        self.touched.add(made.span_id.hex())
        return made

    def _holders(self, logs: bool) -> list[Any]:
        return [held for is_logs, message in self._parts if is_logs == logs for held in _held(logs, message)]

    def items(self) -> list[Any]:
        """Return all spans and log records."""
        return [*self.spans(), *(record for held in self._holders(logs=True) for record in held)]


def rewritten(held: Any, change: Change, depth: int = _MOST_NESTED) -> Any:
    """Return ``held`` with ``change`` applied to every value, also within JSON texts; the same object if unchanged."""
    if isinstance(held, str):
        parsed = as_json(held) if depth else None
        made = parsed if parsed is None else rewritten(parsed, change, depth - 1)
        if made is parsed:
            return change(held)
        return json.dumps(made, ensure_ascii=False)
    made = change(held)
    if made is not held or not isinstance(held, dict | list):
        return made
    pairs = [*(held.items() if isinstance(held, dict) else enumerate(held))]
    new = {key: rewritten(each, change, depth) for key, each in pairs}
    if all(new[key] is each for key, each in pairs):
        return held
    if isinstance(held, dict):
        return new
    return [*new.values()]


def as_json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict | list) else None


def _values(item: Any) -> list[AnyValue]:
    holders = (item, *getattr(item, "events", ()))
    found = [pair.value for holder in holders for pair in holder.attributes]
    if isinstance(item, LogRecord):
        found.append(item.body)
    return found


def _rewrite(target: AnyValue, change: Change) -> bool:
    held = value(target)
    made = rewritten(held, change)
    if made is held:
        return False
    target.CopyFrom(_any(made))
    return True


def _any(held: Any) -> AnyValue:
    match held:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=held)
        case int():
            return AnyValue(int_value=held)
        case float():
            return AnyValue(double_value=held)
        case bytes():
            return AnyValue(bytes_value=held)
        case dict():
            pairs = [KeyValue(key=key, value=_any(each)) for key, each in held.items()]
            return AnyValue(kvlist_value=KeyValueList(values=pairs))
        case list():
            return AnyValue(array_value=ArrayValue(values=[_any(each) for each in held]))
        case _:
            return AnyValue(string_value=str(held))


def _other_id(span_id: bytes, number: int) -> bytes:
    return (int.from_bytes(span_id) ^ (number << 40 | 0xD711)).to_bytes(8)


def _held(logs: bool, message: Any) -> list[Any]:
    if logs:
        return [scoped.log_records for resource in message.resource_logs for scoped in resource.scope_logs]
    return [scoped.spans for resource in message.resource_spans for scoped in resource.scope_spans]
