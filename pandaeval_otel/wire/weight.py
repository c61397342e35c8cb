"""Estimates a request's cost as objects from its bytes, before parsing.

A resource, scope, span or log record costs 1, a submitted trace 20. Ten nested messages or twenty other fields cost 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from pandaeval_otel.wire.fields import fields
from pandaeval_otel.wire.skeleton import Request

_ITEM, _MESSAGE, _FIELD, _TRACE = 20, 2, 1, 400  # units: the smallest is that of a field
_GROUP = 3  # wire type
_MAX_DEPTH = 100  # protobuf reads no more messages within each other


class BrokenBytesError(ValueError):
    """The bytes are no protobuf message."""


@dataclass(slots=True)
class Outline:
    """A message type. ``parts``: possible submessages by field number. ``units``: own cost."""

    units: int
    parts: dict[int, Outline] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A request type.

    ``upper``: outline down to spans and records. ``whole``: down to values. ``tags``: first bytes of repeatable
    messages.
    """

    upper: Outline
    whole: Outline
    tags: bytes


def estimate(request: bytes, kind: RequestKind, limit: int) -> int:
    """Return the items of ``request`` or slightly more; stops above ``limit``. Raises :class:`BrokenBytesError`."""
    upper = _units(request, kind.upper, limit * _ITEM)
    if upper > limit * _ITEM:
        return _items(upper)
    # Each repeatable message within a span begins with one of these bytes, and text has few of them.
    inner = (len(request) - len(request.translate(None, kind.tags))) * _MESSAGE
    if upper + inner > limit * _ITEM:
        return _items(_units(request, kind.whole, limit * _ITEM))
    return _items(upper + inner)


def resources_and_items(request: bytes) -> int:
    """Count resources, scopes, and spans or records. Raises :class:`BrokenBytesError`."""
    try:
        return counted(Request.FromString(request))
    except DecodeError as error:
        raise BrokenBytesError(str(error)) from None


def counted(skeleton: Any) -> int:
    scoped = [scope for resource in skeleton.resourced for scope in resource.scoped]
    return len(skeleton.resourced) + len(scoped) + sum([len(scope.items) for scope in scoped])


def upper_items(request: bytes, kind: RequestKind, limit: int) -> int:
    """Return the items outside spans and records; stops above ``limit``. Raises :class:`BrokenBytesError`."""
    return _items(_units(request, kind.upper, limit * _ITEM))


def _items(units: int) -> int:
    return -(-units // _ITEM)


def _units(data: bytes, outline: Outline, limit: int) -> int:
    try:
        return _walked(data, 0, len(data), outline.parts, limit, 0)
    except ValueError as error:
        raise BrokenBytesError(str(error)) from None


def _walked(data: bytes, at: int, end: int, parts: dict[int, Outline], limit: int, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise BrokenBytesError("messages lie too deep")
    total = 0
    for tag, _, start, stop, copies in fields(data, at, end):
        kind = tag & 7
        inner = parts.get(tag >> 3, _PLAIN) if kind == 2 else _PLAIN
        total += copies * inner.units
        if kind == _GROUP:
            total += stop - start  # an overestimate, because senders use no groups
        elif inner.parts:
            total += copies * _walked(data, start, stop, inner.parts, limit - total, depth + 1)
        if total > limit:
            break
    return total


def _values() -> tuple[Outline, Outline]:
    pair, value, array, pairs = (Outline(_MESSAGE) for _ in range(4))
    pair.parts = {2: value}
    value.parts = {5: array, 6: pairs}
    array.parts, pairs.parts = {1: value}, {1: pair}
    return pair, value


def _request(item: Outline) -> Outline:
    pair, _ = _values()
    resource = Outline(_MESSAGE, {1: pair, 3: Outline(_MESSAGE)})
    scoped = Outline(_ITEM, {1: Outline(_MESSAGE, {3: pair}), 2: item})
    return Outline(0, {1: Outline(_ITEM, {1: resource, 2: scoped})})


def _submission(spans: Outline, records: Outline) -> Outline:
    return Outline(0, {1: Outline(_TRACE, {2: _request(spans), 3: _request(records)})})


def _tags(*fields: int) -> bytes:
    short = [number << 3 | 2 for number in fields]
    return bytes(short + [byte | 128 for byte in short])


def _kinds() -> tuple[RequestKind, RequestKind, RequestKind]:
    pair, value = _values()
    event, link = Outline(_MESSAGE, {3: pair}), Outline(_MESSAGE, {4: pair})
    span = Outline(_ITEM, {9: pair, 11: event, 13: link, 15: Outline(_MESSAGE)})
    record = Outline(_ITEM, {5: value, 6: pair})
    leaf = Outline(_ITEM)
    return (
        RequestKind(_request(leaf), _request(span), _tags(1, 3, 4, 9, 11, 13)),
        RequestKind(_request(leaf), _request(record), _tags(1, 3, 6)),
        RequestKind(_submission(leaf, leaf), _submission(span, record), _tags(1, 3, 4, 6, 9, 11, 13)),
    )


_PLAIN, (TRACES, LOGS, SUBMISSION) = Outline(_FIELD), _kinds()
