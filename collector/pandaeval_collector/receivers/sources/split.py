"""Takes OTLP/JSON apart by trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pandaeval_otel.wire.otlp_json import BadOtlp, traces_from_json

T = TypeVar("T")


def newest_first(
    since: int, until: int, least: int, ask: Callable[[int, int], tuple[T, bool]]
) -> Iterator[tuple[T, bool]]:
    """Everything from ``since`` up to ``until``, a window at a time from the end. ``ask`` gives what lies in a window,
    and whether it holds all of it; of one that does not hold all the later half is asked for instead, down to
    ``least``, below which what came is given as it is, with ``False``. What lies on the border of two windows may come
    twice."""
    end, width = until, until - since
    while end > since:
        begin = max(since, end - width)
        found, whole = ask(begin, end)
        if not whole and end - begin > least:
            width = max(least, (end - begin) // 2)
            continue
        yield found, whole
        end, width = begin, width * 2


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
