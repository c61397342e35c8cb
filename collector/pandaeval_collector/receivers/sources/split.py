"""Takes OTLP/JSON apart by trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.wire.otlp_json import BadOtlp, traces_from_json

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OneTrace:
    """A trace as it is kept until it is scored. ``start_ns``: Unix nanoseconds, 0 where nothing says so; ``data``: the
    request as protobuf; ``problem``: why there is none."""

    start_ns: int
    data: bytes
    problem: str = ""


def by_trace(document: Mapping[str, Any]) -> dict[str, OneTrace]:
    """The requests for each trace, by its id in hex, the one that started last first; resources and scopes are said
    again where several traces share them. What is not as OTLP has it raises ``TypeError``, ``KeyError``,
    ``AttributeError`` or ``ValueError``."""
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
    newest_first = sorted(found, key=starts.__getitem__, reverse=True)
    return {id_: _one(starts[id_], {"resourceSpans": found.pop(id_)}) for id_ in newest_first}


def _one(start_ns: int, document: Json) -> OneTrace:
    try:
        return OneTrace(start_ns, traces_from_json(document).SerializeToString())
    except BadOtlp as error:
        return OneTrace(start_ns, b"", str(error))
