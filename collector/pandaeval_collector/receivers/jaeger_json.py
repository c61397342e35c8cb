"""Jaeger's own JSON, as its pages download it and ``/api/traces`` answers it, as OTLP/JSON.

What Jaeger makes of OTLP is turned back: tags that stand for a span's kind, status and scope, logs that stand for its
events. Times have microseconds there. Lists in attributes stay the JSON text that Jaeger keeps of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pandaeval_otel.wire.otlp_json import BadOtlp

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_CODES = {"OK": 1, "ERROR": 2}
_VALUES = {"bool": "boolValue", "int64": "intValue", "float64": "doubleValue", "binary": "bytesValue"}
_SCOPE = ("otel.scope.name", "otel.library.name"), ("otel.scope.version", "otel.library.version")
_MEANT_OTHERWISE = frozenset(
    {"span.kind", "otel.status_code", "otel.status_description", "w3c.tracestate", "internal.span.format"}
).union(*_SCOPE)

Json = dict[str, Any]


def from_jaeger(document: Mapping[str, Any]) -> Json | None:
    """The document as a trace request, each span with resource and scope of its own; ``None`` if it is no such answer
    of Jaeger. Raises :class:`BadOtlp` for one that is damaged."""
    traces = document.get("data")
    if not isinstance(traces, list) or not all(isinstance(each, dict) and "spans" in each for each in traces):
        return None
    try:
        return {"resourceSpans": [made for trace in traces for made in _resources(trace)]}
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadOtlp(f"not as Jaeger writes traces: {type(error).__name__}: {error}") from None


def _resources(trace: Json) -> Iterator[Json]:
    """One for each span: its scope is a matter of its tags."""
    processes = trace.get("processes") or {}
    for span in trace["spans"]:
        process = span.get("process") or processes.get(span.get("processID")) or {}
        tags = {tag["key"]: tag for tag in span.get("tags") or ()}
        service = {"key": "service.name", "value": {"stringValue": process.get("serviceName") or ""}}
        resource = [service, *(_attribute(tag) for tag in process.get("tags") or () if tag["key"] != "service.name")]
        name, version = (next((_text(tags[key]) for key in keys if key in tags), "") for keys in _SCOPE)
        scope = {"scope": {"name": name, "version": version}, "spans": [_span(span, tags)]}
        yield {"resource": {"attributes": resource}, "scopeSpans": [scope]}


def _span(span: Json, tags: Mapping[str, Json]) -> Json:
    trace_id, start = _trace_id(span), round(span["startTime"])
    references = span.get("references") or []
    parents = [each for each in references if each.get("refType") == "CHILD_OF" and _trace_id(each) == trace_id]
    code = _CODES.get(_text(tags.get("otel.status_code")), 0)
    broken = str(tags.get("error", {}).get("value")).lower() == "true"
    hidden = {*_MEANT_OTHERWISE, "error"} if broken else _MEANT_OTHERWISE
    return {
        "traceId": trace_id,
        "spanId": _span_id(span["spanID"]),
        "parentSpanId": _span_id(parents[0]["spanID"] if parents else span.get("parentSpanID") or ""),
        "name": span["operationName"],
        "kind": _KINDS.get(_text(tags.get("span.kind")), 1),
        "traceState": _text(tags.get("w3c.tracestate")),
        "startTimeUnixNano": start * 1000,
        "endTimeUnixNano": (start + round(span.get("duration") or 0)) * 1000,
        "attributes": [_attribute(tag) for tag in span.get("tags") or () if tag["key"] not in hidden],
        "events": [_event(log) for log in span.get("logs") or ()],
        "links": [
            {"traceId": _trace_id(each), "spanId": _span_id(each["spanID"])}
            for each in references
            if each not in parents[:1]
        ],
        "status": {"code": code or (2 if broken else 0), "message": _text(tags.get("otel.status_description"))},
    }


def _event(log: Json) -> Json:
    fields = log.get("fields") or []
    name = next((_text(each) for each in fields if each["key"] == "event"), "")
    others = [_attribute(each) for each in fields if each["key"] != "event"]
    return {"timeUnixNano": round(log["timestamp"]) * 1000, "name": name, "attributes": others}


def _attribute(tag: Json) -> Json:
    kind = _VALUES.get(tag.get("type") or "", "stringValue")
    value = tag["value"]
    return {"key": tag["key"], "value": {kind: value if kind != "stringValue" else _text(tag)}}


def _text(tag: Json | None) -> str:
    value = None if tag is None else tag.get("value")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _trace_id(held: Json) -> str:
    """With the zeros in front that some versions leave out."""
    return str(held["traceID"]).zfill(32)


def _span_id(text: str) -> str:
    return text.zfill(16) if text else ""
