"""Bounds a span or log record before decoding, and cuts everything above a cap.

Cuts are equal for every receiver and are added to OTLP's dropped counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.wire import fields as wire_fields
from pandaeval_otel.wire.fields import entry, fields, number_in, pair, varint
from pandaeval_otel.wire.skeleton import Request
from pandaeval_otel.wire.weight import TRACES, upper_items

# Limits on the objects made by decoding a trace, and their present count.
#
# An event of two bytes takes hundreds of bytes in memory, so a few megabytes of events could exhaust a process.
MAX_ATTRIBUTES = 1024
"""Maximum distinct keys of a span, event, link, log record or resource. The first keys are kept, with their last
values."""
MAX_EVENTS, MAX_LINKS = 4096, 1024
"""Maximum events and links of a span. The first are kept."""
MAX_NESTED = 1 << 15
"""Maximum fields in an attribute value or body. A remark replaces larger values."""
MAX_EVENT_ATTRIBUTES = 1 << 16
"""Maximum attributes of all events of a span, and of all its links."""
MAX_ITEMS = 1 << 18
"""Maximum resources, scopes and items of a stored request."""
MAX_FIELDS = 1 << 21
"""Maximum walked fields in a trace's large messages: about two seconds."""
SMALL = 1 << 16
"""Messages up to this size in bytes are not walked. They make at most half as many objects."""
MAX_OBJECTS = 750_000
"""Maximum spans, attributes, events, links and nested values per trace: about 100 MB of objects. Ordinary traces
reach ``close.max_bytes`` first.
"""
_MAX_COUNT = 0xFFFFFFFF
_INSIDE = {
    ("any", 0x2A): "array",
    ("any", 0x32): "map",
    ("array", 0x0A): "any",
    ("map", 0x0A): "pair",
    ("pair", 0x12): "any",
}
NOTE = (
    f"read in part: a span or log record holds more than {MAX_ATTRIBUTES} attributes, {MAX_EVENTS} events, "
    f"{MAX_LINKS} links or {MAX_NESTED} values in one attribute"
)


class AboveCapError(Exception):
    """A small span exceeds a cap."""


class TooMuchError(ValueError):
    """A trace has too many objects to decode."""


@dataclass(slots=True)
class Room:
    """The remaining objects of a trace. ``cut``: whether anything was omitted."""

    left: int = MAX_OBJECTS
    cut: bool = False
    fields: int = MAX_FIELDS

    def look(self) -> None:
        self.fields -= 1
        if self.fields < 0:
            raise TooMuchError(f"the large spans and log records of the trace have more than {MAX_FIELDS} fields")

    def take(self, objects: int) -> None:
        """Count objects. Raises :class:`TooMuchError`."""
        self.left -= objects
        if self.left < 0:
            raise TooMuchError(f"the trace holds more than {MAX_OBJECTS} attributes, events, links and values in them")


def outline(chunk: bytes) -> Any:
    """Parse a stored request as ``skeleton.Request``. Raises :class:`TooMuchError`."""
    if len(chunk) > SMALL and upper_items(chunk, TRACES, MAX_ITEMS) > MAX_ITEMS:
        raise TooMuchError(f"a stored request holds more than {MAX_ITEMS} resources, scopes and items")
    return Request.FromString(chunk)


def nested(data: bytes, room: Room) -> int:
    """Count the fields in an encoded ``AnyValue``, up to the cap + 1."""
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


def inside(values: Iterable[Any]) -> int:
    number = 0
    stack = [*values]
    while stack:
        value = stack.pop()
        if type(value) is dict:
            value = [*value.values()]
        if type(value) is list:
            number += len(value)
            stack.extend(value)
    return number


@dataclass(frozen=True, slots=True)
class Shape:
    """The counted fields of a message, by tag.

    ``lists``: per repeated field its cap, dropped count and item shape. ``body``: a field with a value. ``whole``: all
    values share a cap.
    """

    attributes: int
    dropped: int
    lists: Mapping[int, tuple[int, int, Shape]] = field(default_factory=dict)
    body: int = 0
    whole: bool = True


_EVENT, _LINK = Shape(0x1A, 0x20, whole=False), Shape(0x22, 0x28, whole=False)
SPAN = Shape(0x4A, 0x50, {0x5A: (MAX_EVENTS, 0x60, _EVENT), 0x6A: (MAX_LINKS, 0x70, _LINK)}, whole=False)
LOG = Shape(0x32, 0x38, body=0x2A)
RESOURCE, SCOPE = Shape(0x0A, 0x10), Shape(0x1A, 0x20)


def within(raw: bytes, shape: Shape, room: Room) -> bytes:
    """Cut the message to the caps, or return the same object. Raises ``ValueError`` for an invalid message."""
    if len(raw) <= SMALL:
        return raw
    return cut(raw, shape, room)


def cut(raw: bytes, shape: Shape, room: Room) -> bytes:
    """Does the work of :func:`within` for a message of any size."""
    kept: dict[int, bytes] = {}
    values = _Values(shape, room)
    entries = _Entries(values)
    lists = {tag: _Items(*rules) for tag, rules in shape.lists.items()}
    dropped: dict[int, int] = {}
    unchanged = True
    for tag, start, at, end, copies in fields(raw):
        room.look()
        if tag == shape.attributes:
            taken, as_given = entries.add(raw[at:end], copies)
            counted_in = shape.dropped
        elif tag in lists:
            taken, as_given = lists[tag].add(raw[at:end], copies, room)
            counted_in = lists[tag].counted_in
        elif tag == shape.body:
            given = raw[at:end]
            value = values.of(given)
            kept[tag] = wire_fields.field(tag, value)
            unchanged = unchanged and value is given
            continue
        else:
            kept[tag] = raw[start:end]
            continue
        unchanged = unchanged and as_given
        if taken < copies:
            dropped[counted_in] = dropped.get(counted_in, 0) + copies - taken
    if unchanged and not dropped and entries.pairs == len(entries.kept):
        return raw
    for tag, count in dropped.items():
        room.cut = True
        kept[tag] = varint(tag) + varint(min(_MAX_COUNT, count + number_in(kept.get(tag))))
    parts = list(kept.values())
    parts += [wire_fields.field(shape.attributes, pair(key, value)) for key, value in entries.kept.items()]
    parts += [wire_fields.field(tag, item) for tag, items in lists.items() for item in items.kept]
    return b"".join(parts)


@dataclass(slots=True)
class _Entries:
    values: _Values
    kept: dict[bytes, bytes] = field(default_factory=dict)
    pairs: int = 0

    def add(self, encoded: bytes, copies: int) -> tuple[int, bool]:
        if len(self.kept) >= MAX_ATTRIBUTES:
            return 0, True
        self.pairs += copies
        key, given = entry(encoded)
        self.kept[key] = value = self.values.of(given)
        return copies, value is given


@dataclass(slots=True)
class _Items:
    cap: int
    counted_in: int
    shape: Shape
    kept: list[bytes] = field(default_factory=list)
    attributes: int = 0

    def add(self, item: bytes, copies: int, room: Room) -> tuple[int, bool]:
        taken = min(copies, self.cap - len(self.kept))
        if self.attributes > MAX_EVENT_ATTRIBUTES:
            taken = 0
        if not taken:
            return 0, True
        kept = item if len(item) <= 2 * MAX_ATTRIBUTES else cut(item, self.shape, room)
        tag = self.shape.attributes
        self.attributes += taken * (kept.count(tag) + kept.count(tag | 0x80))  # an upper bound of its attributes
        self.kept += [kept] * taken
        return taken, kept is item


@dataclass(slots=True)
class _Values:
    shape: Shape
    room: Room
    inside: int = 0

    def of(self, data: bytes) -> bytes:
        if self.shape.whole:
            self.inside += nested(data, self.room)
            if self.inside <= MAX_NESTED:
                return data
        elif len(data) <= SMALL or nested(data, self.room) <= MAX_NESTED:
            return data
        self.room.cut = True
        remark = f"[{len(data)} bytes, with more than {MAX_NESTED} values beside them or inside: left out]"
        return wire_fields.field(0x0A, remark.encode())
