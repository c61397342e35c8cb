"""Decides which spans can matter to a score, by the hints that dialects are found by, so that no span that a dialect
reads is missed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from opentelemetry.sdk.trace import ReadableSpan

from pandaeval_otel.dialects import dialects
from pandaeval_otel.dialects.plain import kind_by_name


class HeldSpan(NamedTuple):
    """A held span: ids, whether it can matter, and its bytes."""

    span_id: bytes
    parent: bytes
    matters: bool
    data: bytes


def matters(span: ReadableSpan) -> bool:
    """Returns whether any dialect would read this span."""
    roots, scopes, names = _hints()
    scope = span.instrumentation_scope
    if span.name.startswith(names) or (scope is not None and scope.name.startswith(scopes)):
        return True
    keys = [*(span.attributes or ())]
    for event in span.events:
        keys += (event.name, *(event.attributes or ()))
    return any(key.partition(".")[0] in roots for key in keys) or kind_by_name(span.name)[0] is not None


def needed(rows: Iterable[HeldSpan]) -> list[HeldSpan]:
    """Returns the rows that matter and all above them, in their order; none if none matters."""
    rows = list(rows)
    parents: Mapping[bytes, bytes] = {row.span_id: row.parent for row in rows}
    kept: set[bytes] = set()
    for row in rows:
        at = row.span_id if row.matters else b""
        while at in parents and at not in kept:
            kept.add(at)
            at = parents[at]
    return [row for row in rows if row.span_id in kept]


@cache
def _hints() -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    found = dialects()
    roots = frozenset(root for dialect in found for root in dialect.roots)
    scopes = tuple(prefix for dialect in found for prefix in dialect.scopes)
    return roots, scopes, tuple(prefix for dialect in found for prefix in dialect.names)
