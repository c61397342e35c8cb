"""Tells messages with log records from those with spans: both lie in one topic, so that one collector reads both of a
trace. Two topics would not do: a group gives the partitions of two topics to its members independently."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_otel.wire.fields import fields

_BLOCK, _INNER, _TRACE_ID = 0x0A, 0x12, 0x0A
"""Tags: of resource blocks in a request, of scopes in those and items in these, and of a span's trace id."""


def holds_logs(request: bytes) -> bool:
    """Whether the first item of a request is a log record. The outlines of both kinds of request are the same, and
    their items are not: a span has the trace id in its field 1, a log record a fixed number. ``False`` for what is
    empty or no OTLP."""
    try:
        item = next(_items(request), None)
        return item is not None and all(tag != _TRACE_ID for tag, *_ in fields(item))
    except ValueError:
        return False


def _items(request: bytes) -> Iterator[bytes]:
    for block in _each(request, _BLOCK):
        for scoped in _each(block, _INNER):
            yield from _each(scoped, _INNER)


def _each(message: bytes, wanted: int) -> Iterator[bytes]:
    return (message[at:end] for tag, _, at, end, _ in fields(message) if tag == wanted)
