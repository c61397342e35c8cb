"""Counts what encoded requests and values hold before objects are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pandaeval_otel.base.caps import MAX_ITEMS, MAX_NESTED, SMALL, Room, TooMuchError
from pandaeval_otel.wire.fields import fields
from pandaeval_otel.wire.skeleton import Request


def outline(chunk: bytes) -> Any:
    """A stored request as ``skeleton.Request``. Raises :class:`TooMuchError` for one that would be more resources,
    scopes and items than any trace has."""
    if len(chunk) > SMALL and _containers(chunk) > MAX_ITEMS:
        raise TooMuchError(f"a stored request holds more than {MAX_ITEMS} resources, scopes and items")
    return Request.FromString(chunk)


def _containers(chunk: bytes) -> int:
    number = 0
    for tag, _, at, end, copies in fields(chunk):
        number += copies
        if tag == 0x0A and end > at:
            inner = chunk[at:end]
            for kind, _, start, stop, times in fields(inner):
                number += times
                if kind == 0x12 and stop > start:
                    number += sum(copies for *_, copies in fields(inner[start:stop]))
                if number > MAX_ITEMS:
                    return number
        if number > MAX_ITEMS:
            break
    return number


def nested(data: bytes, room: Room) -> int:
    """How many fields stand inside of an ``AnyValue``, itself included; no more than one above the cap are counted.
    Below: array (5) and map (6) > values (1) > in a map: value (2)."""
    number = 0
    stack = [(data, "any")]
    while stack:
        part, kind = stack.pop()
        for tag, _, at, end, copies in fields(part):
            room.look()
            number += copies
            if number > MAX_NESTED:
                return number
            inner = _INSIDE.get((kind, tag))
            if inner is not None and end > at:
                stack.append((part[at:end], inner))
    return number


_INSIDE = {("any", 0x2A): "array", ("any", 0x32): "map", ("array", 0x0A): "any", ("map", 0x0A): "pair"}
_INSIDE[("pair", 0x12)] = "any"


def inside(values: Iterable[Any]) -> int:
    """How many values stand inside of decoded lists and maps."""
    number = 0
    stack = [*values]
    while stack:
        each = stack.pop()
        if type(each) is dict:
            number += len(each)
            stack.extend(each.values())
        elif type(each) is list:
            number += len(each)
            stack.extend(each)
    return number
