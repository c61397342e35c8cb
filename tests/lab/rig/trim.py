"""Trims large captures for tests, with intact structure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

LONGEST, HEAD, TAIL = 300, 70, 30
FEW = 3
"""Number of extra tool definitions to keep."""


def trim(requests: Iterable[dict[str, Any]], tools: Iterable[str], spans: str = "") -> list[dict[str, Any]]:
    """Shorten texts; keep few tools beside ``tools``, spans that match ``spans`` with parents, and their logs."""
    named = tuple(tools)
    cut = [_cut(request, named) for request in requests]
    kept = _kept(cut, re.compile(spans))
    return [request for request in (_only(request, kept) for request in cut) if request]


def _cut(value: Any, tools: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _cut(item, tools) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, tools) for item in _few(value, tools)]
    if not isinstance(value, str) or len(value) <= LONGEST:
        return value
    if value[0] in "[{":
        try:
            return json.dumps(_cut(json.loads(value), tools), ensure_ascii=False, separators=(",", ":"))
        except ValueError:
            pass
    return f"{value[:HEAD]}…{value[-TAIL:]}"


def _few(items: list[Any], tools: tuple[str, ...]) -> list[Any]:
    """Return the list, with few tools beside the script's."""
    names = [_defined(item) for item in items]
    if len(items) <= FEW or not all(names):
        return items
    other = [item for item, name in zip(items, names, strict=True) if not name.endswith(tools)]
    return [item for item in items if item not in other[FEW:]]


def _defined(item: Any) -> str:
    """Return the name of a defined tool, also from JSON text."""
    if isinstance(item, dict) and isinstance(item.get("stringValue"), str):
        item = item["stringValue"]
    if isinstance(item, str) and item.startswith("{"):
        try:
            item = json.loads(item)
        except ValueError:
            return ""
    whole = item if isinstance(item, dict) else {}
    inner = whole.get("function") if isinstance(whole.get("function"), dict) else whole
    return str(inner.get("name") or "") if inner.keys() & {"description", "parameters", "inputSchema"} else ""


def _kept(requests: Iterable[dict[str, Any]], wanted: re.Pattern[str]) -> Callable[[Mapping[str, Any]], bool]:
    spans = {span["spanId"]: span for request in requests for span in _spans(request)}
    kept: set[str] = set()
    for span in spans.values():
        at = span["spanId"] if wanted.search(span["name"]) else ""
        while at in spans and at not in kept:
            kept.add(at)
            at = spans[at].get("parentSpanId", "")
    return lambda record: record.get("spanId") in kept


def _spans(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for block in request.get("resourceSpans", ()):
        for scope in block["scopeSpans"]:
            yield from scope["spans"]


def _only(request: dict[str, Any], kept: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
    blocks = {}
    for key, inner, records in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
        for block in request.get(key, ()):
            scopes = [{**scope, records: [item for item in scope[records] if kept(item)]} for scope in block[inner]]
            if scopes := [scope for scope in scopes if scope[records]]:
                blocks.setdefault(key, []).append({**block, inner: scopes})
    return blocks
