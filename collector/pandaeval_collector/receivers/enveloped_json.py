"""Answers of query APIs that hold OTLP/JSON in an envelope of their own: Jaeger's v3 API (``{"result": {…}}``), Tempo's
v1 (``{"batches": […]}``) and v2 (``{"trace": {…}}``)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

_SPANS = ("resourceSpans", "resource_spans")
_IDS = {"traceId": 24, "trace_id": 24, "spanId": 12, "span_id": 12, "parentSpanId": 12, "parent_span_id": 12}
"""Fields that hold ids, and how long base64 writes them: protobuf's JSON has that in place of OTLP's hex digits."""


def from_envelope(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The trace request in it, ids in hex; ``None`` if it is no such answer."""
    for key in ("result", "trace"):
        held = document.get(key)
        if isinstance(held, dict) and any(name in held for name in (*_SPANS, "batches")):
            document = held
            break
    batches = next((document[key] for key in ("batches", *_SPANS) if key in document), None)
    return {"resourceSpans": [_plain(batch) for batch in batches]} if isinstance(batches, list) else None


def _plain(batch: Any) -> Any:
    """With spans as OTLP has them, also from before scopes were called so; what is no object stays as it is, for
    whoever reads the request to refuse."""
    if not isinstance(batch, dict):
        return batch
    scopes = next((batch[key] for key in ("scopeSpans", "scope_spans") if key in batch), None)
    if scopes is None:
        scopes = batch.get("instrumentationLibrarySpans", [])
    if not isinstance(scopes, list):
        return batch
    return {"resource": batch.get("resource"), "scopeSpans": [_scope(each) for each in scopes]}


def _scope(held: Any) -> Any:
    spans = held.get("spans") if isinstance(held, dict) else None
    if not isinstance(spans, list):
        return held
    scope = held.get("scope", held.get("instrumentationLibrary"))
    return {"scope": scope, "spans": [_span(span) for span in spans]}


def _span(span: Any) -> Any:
    if not isinstance(span, dict):
        return span
    found = {key: _hex(held, _IDS[key]) if key in _IDS else held for key, held in span.items()}
    if isinstance(found.get("links"), list):
        found["links"] = [_span(link) for link in found["links"]]
    return found


def _hex(value: Any, length: int) -> Any:
    if not isinstance(value, str) or len(value) != length:
        return value
    try:
        return base64.b64decode(value, validate=True).hex()
    except ValueError:
        return value
