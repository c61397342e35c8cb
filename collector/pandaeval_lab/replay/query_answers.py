"""Converts answers of query APIs to OTLP/JSON: OTLP in an envelope (Jaeger v3, Tempo), and Jaeger's own JSON.

In Jaeger's own JSON, tags hold a span's kind, status and scope, and logs its events. Times have microseconds. Lists in
attributes stay the JSON text that Jaeger keeps of them.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
from typing import Any

from pandaeval_otel.wire.otlp_json import BadOtlp

_SPANS = ("resourceSpans", "resource_spans")
_IDS = {"traceId": 24, "trace_id": 24, "spanId": 12, "span_id": 12, "parentSpanId": 12, "parent_span_id": 12}
"""Fields that hold ids, and how long base64 writes them: protobuf's JSON has that in place of OTLP's hex digits."""
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_CODES = {"OK": 1, "ERROR": 2}
_VALUES = {"bool": "boolValue", "int64": "intValue", "float64": "doubleValue", "binary": "bytesValue"}
_SCOPE = ("otel.scope.name", "otel.library.name"), ("otel.scope.version", "otel.library.version")
_MEANT_OTHERWISE = frozenset(
    {"span.kind", "otel.status_code", "otel.status_description", "w3c.tracestate", "internal.span.format"}
).union(*_SCOPE)
Json = dict[str, Any]


def from_envelope(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the trace request in an answer of a query API, ids in hex; ``None`` if it is no such answer: OTLP/JSON in
    an envelope, as of Jaeger's v3 API (``{"result": {…}}``), and Tempo's v1 (``{"batches": […]}``) and v2 (``{"trace":
    {…}}``)."""
    for key in ("result", "trace"):
        held = document.get(key)
        if isinstance(held, dict) and any(name in held for name in (*_SPANS, "batches")):
            document = held
            break
    batches = next((document[key] for key in ("batches", *_SPANS) if key in document), None)
    return {"resourceSpans": [_plain(batch) for batch in batches]} if isinstance(batches, list) else None


def _plain(batch: Any) -> Any:
    """Converts a batch to spans as OTLP has them, also one from before scopes were called so. What is no object stays
    as it is: whoever reads the request refuses it."""
    if not isinstance(batch, dict):
        return batch
    scopes = next((batch[key] for key in ("scopeSpans", "scope_spans") if key in batch), None)
    if scopes is None:
        scopes = batch.get("instrumentationLibrarySpans", [])
    if not isinstance(scopes, list):
        return batch
    converted = []
    for held in scopes:
        spans = held.get("spans") if isinstance(held, dict) else None
        if isinstance(spans, list):
            scope = held.get("scope", held.get("instrumentationLibrary"))
            held = {"scope": scope, "spans": [_enveloped_span(span) for span in spans]}
        converted.append(held)
    return {"resource": batch.get("resource"), "scopeSpans": converted}


def _enveloped_span(span: Any) -> Any:
    if not isinstance(span, dict):
        return span
    converted = dict(span)
    for key, length in _IDS.items():
        if isinstance(id_ := span.get(key), str) and len(id_) == length:
            with contextlib.suppress(ValueError):
                converted[key] = base64.b64decode(id_, validate=True).hex()
    if isinstance(links := span.get("links"), list):
        converted["links"] = [_enveloped_span(link) for link in links]
    return converted


def from_jaeger(document: Mapping[str, Any]) -> Json | None:
    """Converts a document to a trace request, each span with resource and scope of its own; ``None`` if it is no answer
    of Jaeger. Raises :class:`BadOtlp` for one that is damaged."""
    traces = document.get("data")
    if not isinstance(traces, list) or not all(isinstance(trace, dict) and "spans" in trace for trace in traces):
        return None
    resources: list[Json] = []
    try:
        for trace in traces:
            processes = trace.get("processes") or {}
            resources += [_resource(span, processes) for span in trace["spans"]]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadOtlp(f"not as Jaeger writes traces: {type(error).__name__}: {error}") from None
    return {"resourceSpans": resources}


def _resource(span: Json, processes: Mapping[str, Json]) -> Json:
    """Returns the resource of one span, with the scope that is among its tags."""
    process = span.get("process") or processes.get(str(span.get("processID"))) or {}
    tags = {tag["key"]: tag for tag in span.get("tags") or ()}
    service = {"key": "service.name", "value": {"stringValue": process.get("serviceName") or ""}}
    others = [_attribute(tag) for tag in process.get("tags") or () if tag["key"] != "service.name"]
    name, version = (next((_text(tags[key]) for key in keys if key in tags), "") for keys in _SCOPE)
    scope = {"scope": {"name": name, "version": version}, "spans": [_span(span, tags)]}
    return {"resource": {"attributes": [service, *others]}, "scopeSpans": [scope]}


def _span(span: Json, tags: Mapping[str, Json]) -> Json:
    trace_id, start = _trace_id(span), round(span["startTime"])
    references = span.get("references") or []
    parents = [each for each in references if each.get("refType") == "CHILD_OF" and _trace_id(each) == trace_id]
    failed = str(tags.get("error", {}).get("value")).lower() == "true"
    hidden = {*_MEANT_OTHERWISE, "error"} if failed else _MEANT_OTHERWISE
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
            {"traceId": _trace_id(reference), "spanId": _span_id(reference["spanID"])}
            for reference in references
            if reference not in parents[:1]
        ],
        "status": {
            "code": _CODES.get(_text(tags.get("otel.status_code"))) or 2 * failed,
            "message": _text(tags.get("otel.status_description")),
        },
    }


def _event(log: Json) -> Json:
    fields = log.get("fields") or []
    names = [_text(tag) for tag in fields if tag["key"] == "event"]
    return {
        "timeUnixNano": round(log["timestamp"]) * 1000,
        "name": names[0] if names else "",
        "attributes": [_attribute(tag) for tag in fields if tag["key"] != "event"],
    }


def _attribute(tag: Json) -> Json:
    kind = _VALUES.get(tag.get("type") or "", "stringValue")
    value = tag["value"]
    return {"key": tag["key"], "value": {kind: value if kind != "stringValue" else _text(tag)}}


def _text(tag: Json | None) -> str:
    value = None if tag is None else tag.get("value")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _trace_id(held: Json) -> str:
    """Returns the trace id with the leading zeros that some versions leave out."""
    return str(held["traceID"]).zfill(32)


def _span_id(text: str) -> str:
    return text.zfill(16) if text else ""
