"""Takes OTLP/JSON apart by trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def by_trace(document: Mapping[str, Any]) -> dict[str, Json]:
    """A request for each trace, by its id in hex, the one that started last first; resources and scopes are said again
    where several traces share them. What is not as OTLP has it raises ``TypeError``, ``KeyError``, ``AttributeError``
    or ``ValueError``."""
    found: dict[str, list[Json]] = {}
    starts: dict[str, int] = {}
    for resource in document["resourceSpans"]:
        for scope in resource.get("scopeSpans") or ():
            shares: dict[str, list[Json]] = {}
            for span in scope.get("spans") or ():
                id_, start = str(span["traceId"]).lower(), int(span.get("startTimeUnixNano") or 0)
                shares.setdefault(id_, []).append(span)
                starts[id_] = min(start, starts.get(id_, start))
            for id_, spans in shares.items():
                found.setdefault(id_, []).append({**resource, "scopeSpans": [{**scope, "spans": spans}]})
    return {id_: {"resourceSpans": found[id_]} for id_ in sorted(found, key=starts.__getitem__, reverse=True)}


def started(document: Json) -> int:
    """When the trace of such a request began, in Unix nanoseconds; 0 where nothing says so."""
    scopes = (scope for resource in document["resourceSpans"] for scope in resource.get("scopeSpans") or ())
    return min(
        (int(span.get("startTimeUnixNano") or 0) for scope in scopes for span in scope.get("spans") or ()), default=0
    )
