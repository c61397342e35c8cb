"""Converts answers of query APIs (Jaeger, Tempo) to OTLP/JSON."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
from typing import Any

_SPANS = ("resourceSpans", "resource_spans")
_IDS = {"traceId": 24, "trace_id": 24, "spanId": 12, "span_id": 12, "parentSpanId": 12, "parent_span_id": 12}
"""Fields that hold ids, and how long base64 writes them: protobuf's JSON has that in place of OTLP's hex digits."""


def from_envelope(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the trace request in an answer of Jaeger v3 (``{"result": {…}}``), or Tempo v1 (``{"batches": […]}``) or
    v2 (``{"trace": {…}}``); else ``None``.
    """
    for key in ("result", "trace"):
        held = document.get(key)
        if isinstance(held, dict) and any(name in held for name in (*_SPANS, "batches")):
            document = held
            break
    batches = next((document[key] for key in ("batches", *_SPANS) if key in document), None)
    if not isinstance(batches, list):
        return None
    return {"resourceSpans": [_plain(batch) for batch in batches]}


def _plain(batch: Any) -> Any:
    scopes = batch.get("scopeSpans", batch.get("scope_spans")) if isinstance(batch, dict) else None
    if not isinstance(scopes, list):
        return batch
    converted = []
    for held in scopes:
        spans = held.get("spans") if isinstance(held, dict) else None
        if isinstance(spans, list):
            held = {"scope": held.get("scope"), "spans": [_enveloped_span(span) for span in spans]}
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
