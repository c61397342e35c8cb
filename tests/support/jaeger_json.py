"""OTLP/JSON as Jaeger answers it, by the rules of the OpenTelemetry specification and of Jaeger's translator: lists and
objects in attributes become JSON text, what Jaeger has no field for becomes a tag."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

_KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
_TYPES = {"stringValue": "string", "boolValue": "bool", "intValue": "int64", "doubleValue": "float64"}

Json = dict[str, Any]


def jaeger(requests: Iterable[Json]) -> Json:
    """The answer of ``/api/traces`` that holds these trace requests."""
    traces: dict[str, Json] = {}
    for resource, scope, span in _spans(requests):
        trace = traces.setdefault(span["traceId"], {"traceID": span["traceId"], "spans": [], "processes": {}})
        attributes = [_tag(each) for each in resource.get("attributes", [])]
        service = next((each["value"] for each in attributes if each["key"] == "service.name"), "unknown")
        key = f"p{len(trace['processes']) + 1}"
        others = [each for each in attributes if each["key"] != "service.name"]
        trace["processes"][key] = {"serviceName": service, "tags": others}
        trace["spans"].append(_span(span, scope, key))
    return {"data": list(traces.values()), "total": 0, "limit": 0, "offset": 0, "errors": None}


def _spans(requests: Iterable[Json]) -> Iterator[tuple[Json, Json, Json]]:
    for request in requests:
        for of_resource in request.get("resourceSpans", []):
            for of_scope in of_resource["scopeSpans"]:
                for span in of_scope["spans"]:
                    yield of_resource.get("resource", {}), of_scope.get("scope", {}), span


def _span(span: Json, scope: Json, process: str) -> Json:
    start, end = (int(span[key]) // 1000 for key in ("startTimeUnixNano", "endTimeUnixNano"))
    same = {"traceID": span["traceId"]}
    references = [{"refType": "CHILD_OF", **same, "spanID": span["parentSpanId"]}] if span.get("parentSpanId") else []
    references += [
        {"refType": "FOLLOWS_FROM", "traceID": link["traceId"], "spanID": link["spanId"]}
        for link in span.get("links", [])
    ]
    return {
        "traceID": span["traceId"],
        "spanID": span["spanId"],
        "operationName": span["name"],
        "references": references,
        "startTime": start,
        "duration": end - start,
        "tags": [*map(_tag, span.get("attributes", [])), *_added(span, scope)],
        "logs": [_log(event) for event in span.get("events", [])],
        "processID": process,
        "warnings": None,
    }


def _added(span: Json, scope: Json) -> Iterator[Json]:
    yield _text("otel.scope.name", scope.get("name", ""))
    yield _text("otel.scope.version", scope.get("version", ""))
    if kind := _KINDS.get(span.get("kind", 1)):
        yield _text("span.kind", kind)
    status = span.get("status", {})
    if status.get("code") == 1:
        yield _text("otel.status_code", "OK")
    if status.get("code") == 2:
        yield _text("otel.status_code", "ERROR")
        yield {"key": "error", "type": "bool", "value": True}
    if status.get("message"):
        yield _text("otel.status_description", status["message"])


def _log(event: Json) -> Json:
    fields = [_text("event", event["name"]), *map(_tag, event.get("attributes", []))]
    return {"timestamp": int(event["timeUnixNano"]) // 1000, "fields": fields}


def _tag(attribute: Json) -> Json:
    ((kind, value),) = attribute["value"].items()
    if kind not in _TYPES:
        return _text(attribute["key"], json.dumps(_plain(attribute["value"])))
    return {"key": attribute["key"], "type": _TYPES[kind], "value": int(value) if kind == "intValue" else value}


def _plain(value: Json) -> Any:
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_plain(each) for each in held.get("values", [])]
    if kind == "kvlistValue":
        return {each["key"]: _plain(each["value"]) for each in held.get("values", [])}
    return int(held) if kind == "intValue" else held


def _text(key: str, value: str) -> Json:
    return {"key": key, "type": "string", "value": value}
