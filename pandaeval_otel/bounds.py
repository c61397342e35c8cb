"""How much of one span or log record is read: what is above a cap is cut out of its bytes, before anything is made
of them. An event of two bytes becomes some hundred bytes in memory: a few megabytes of them would end a process.

Only messages that are large are looked through here, field by field; of small ones it is seen when they are decoded,
so that what is usual costs next to nothing. The same bytes are cut the same way by every door, and what was cut is
added to the fields in which OTLP counts what was dropped. This module is not compiled: it may have millions of fields
to pass by, and compiled code would not let other threads have their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.skeleton import Request

MAX_ATTRIBUTES = 1024
"""Distinct keys of a span, event, link, log record or resource; the first ones are kept, each with its last value."""
MAX_EVENTS, MAX_LINKS = 4096, 1024
"""Of a span; the first ones are kept."""
MAX_NESTED = 1 << 15
"""Fields inside of one attribute's value, or of a body; a value with more of them is replaced by a remark."""
MAX_EVENT_ATTRIBUTES = 1 << 16
"""Attributes of all events of a span, and of all its links."""
MAX_ITEMS = 1 << 18
"""Resources, scopes and items of one request as it is stored."""
MAX_FIELDS = 1 << 21
"""Fields of one trace that are looked through one by one, some two seconds: those of its large messages."""
SMALL = 1 << 16
"""Messages of fewer bytes are not looked at: whatever they hold, there are at most half as many objects."""
NOTE = (
    f"read in part: a span or log record holds more than {MAX_ATTRIBUTES} attributes, {MAX_EVENTS} events, "
    f"{MAX_LINKS} links or {MAX_NESTED} values in one attribute"
)

_MAX_COUNT = 0xFFFFFFFF
_RUN = 1024


class AboveCapError(Exception):
    """A small span holds more of something than its cap."""


class TooMuchError(ValueError):
    """So much in one trace that it is not made into objects."""


MAX_OBJECTS = 750_000
"""Spans, attributes, events, links, and values inside of attributes, of one trace: some 100 MB as objects. A trace of
ordinary attributes is as large as ``close.max_bytes`` lets it be before it has so many."""


@dataclass(slots=True)
class Room:
    """How much may still be made of one trace. ``cut``: whether something was left out of it."""

    left: int = MAX_OBJECTS
    cut: bool = False
    fields: int = MAX_FIELDS

    def look(self) -> None:
        """At one more field. Raises :class:`TooMuchError`."""
        self.fields -= 1
        if self.fields < 0:
            raise TooMuchError(f"the large spans and log records of the trace have more than {MAX_FIELDS} fields")

    def take(self, objects: int) -> None:
        """Raises :class:`TooMuchError`."""
        self.left -= objects
        if self.left < 0:
            raise TooMuchError(f"the trace holds more than {MAX_OBJECTS} attributes, events, links and values in them")


@dataclass(frozen=True, slots=True)
class Shape:
    """What is counted of a message, by the tags of its fields: ``attributes`` and ``dropped``, where OTLP counts those
    that are not there; ``lists``: the cap of a repeated field, where it is counted, and what its items are; ``body``: a
    field that is an attribute's value by itself. ``whole``: its values are decoded all at once, so that what may stand
    in one is shared by all."""

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
    """The encoded message, without what is above the caps: the same object where nothing has to go. Raises
    ``ValueError`` where it is no protobuf message."""
    return raw if len(raw) <= SMALL else cut(raw, shape, room)


def cut(raw: bytes, shape: Shape, room: Room) -> bytes:
    """The same, whatever its size."""
    kept: dict[int, bytes] = {}
    lists = {tag: _Items(*rules) for tag, rules in shape.lists.items()}
    dropped: dict[int, int] = {}
    entries: dict[bytes, bytes] = {}
    changed, pairs = False, 0
    values = _Values(shape, room)
    for tag, start, at, end, copies in _fields(raw):
        room.look()
        if tag == shape.attributes:
            pairs += copies
            if len(entries) < MAX_ATTRIBUTES:
                key, given = _entry(raw[at:end])
                entries[key] = value = values.of(given)
                changed = changed or value is not given
            else:
                dropped[shape.dropped] = dropped.get(shape.dropped, 0) + copies
        elif tag in lists:
            taken, as_given = lists[tag].add(raw[at:end], copies, room)
            changed = changed or not as_given
            if copies > taken:
                counted_in = lists[tag].counted_in
                dropped[counted_in] = dropped.get(counted_in, 0) + copies - taken
        elif tag == shape.body:
            given = raw[at:end]
            value = values.of(given)
            kept[tag] = _field_with(tag, value)
            changed = changed or value is not given
        else:
            kept[tag] = raw[start:end]
    if not (changed or dropped or pairs > len(entries)):
        return raw
    for tag, count in dropped.items():
        room.cut = True
        kept[tag] = _number(tag) + _number(min(_MAX_COUNT, count + _said(kept.get(tag))))
    parts = list(kept.values())
    parts += [_field_with(shape.attributes, _pair(key, value)) for key, value in entries.items()]
    parts += [_field_with(tag, item) for tag, items in lists.items() for item in items.kept]
    return b"".join(parts)


@dataclass(slots=True)
class _Items:
    """What is kept of a repeated field, at most ``cap`` items."""

    cap: int
    counted_in: int
    shape: Shape
    kept: list[bytes] = field(default_factory=list)
    attributes: int = 0

    def add(self, item: bytes, copies: int, room: Room) -> tuple[int, bool]:
        """How many of so many copies there is room for, and whether they are kept as they are."""
        taken = min(copies, self.cap - len(self.kept))
        if self.attributes > MAX_EVENT_ATTRIBUTES:
            taken = 0
        if not taken:
            return 0, True
        kept = item if len(item) <= 2 * MAX_ATTRIBUTES else cut(item, self.shape, room)
        tag = self.shape.attributes
        self.attributes += taken * (kept.count(tag) + kept.count(tag | 0x80))  # no more of them can stand in it
        self.kept += [kept] * taken
        return taken, kept is item


@dataclass(slots=True)
class _Values:
    """The values of one message: those with too much inside are replaced by a remark."""

    shape: Shape
    room: Room
    inside: int = 0

    def of(self, data: bytes) -> bytes:
        """An encoded ``AnyValue``."""
        if self.shape.whole:
            self.inside += _nested(data, self.room)
            if self.inside <= MAX_NESTED:
                return data
        elif len(data) <= SMALL or _nested(data, self.room) <= MAX_NESTED:
            return data
        self.room.cut = True
        remark = f"[{len(data)} bytes, with more than {MAX_NESTED} values beside them or inside: left out]"
        return _field_with(0x0A, remark.encode())


def outline(chunk: bytes) -> Any:
    """A stored request as ``skeleton.Request``. Raises :class:`TooMuchError` for one that would be more resources,
    scopes and items than any trace has."""
    if len(chunk) > SMALL and _containers(chunk) > MAX_ITEMS:
        raise TooMuchError(f"a stored request holds more than {MAX_ITEMS} resources, scopes and items")
    return Request.FromString(chunk)


def _containers(chunk: bytes) -> int:
    number = 0
    for tag, _, at, end, copies in _fields(chunk):
        number += copies
        if tag == 0x0A and end > at:
            inner = chunk[at:end]
            for kind, _, start, stop, times in _fields(inner):
                number += times
                if kind == 0x12 and stop > start:
                    number += sum(copies for *_, copies in _fields(inner[start:stop]))
                if number > MAX_ITEMS:
                    return number
        if number > MAX_ITEMS:
            break
    return number


def _nested(data: bytes, room: Room) -> int:
    """How many fields stand inside of an ``AnyValue``, itself included; no more than one above the cap are counted.
    Below: array (5) and map (6) > values (1) > in a map: value (2)."""
    number = 0
    stack = [(data, "any")]
    while stack:
        part, kind = stack.pop()
        for tag, _, at, end, copies in _fields(part):
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


def _entry(pair: bytes) -> tuple[bytes, bytes]:
    key = value = b""
    for tag, _, at, end, _ in _fields(pair):
        if tag == 0x0A:
            key = pair[at:end]
        elif tag == 0x12:
            value = pair[at:end]
    return key, value


def _pair(key: bytes, value: bytes) -> bytes:
    return _field_with(0x0A, key) + _field_with(0x12, value)


def _said(encoded: bytes | None) -> int:
    """The number in a field."""
    if encoded is None:
        return 0
    _, at = _varint(encoded, 0)
    return _varint(encoded, at)[0]


def _field_with(tag: int, content: bytes) -> bytes:
    return _number(tag) + _number(len(content)) + content


def _number(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    number = shift = 0
    for end in range(at, min(at + 10, len(data))):
        byte = data[end]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, end + 1
        shift += 7
    raise ValueError("the message ends within a number")


def _fields(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """The fields of a message: tag, where it begins, where its content begins and ends, and how often
    it stands here in a row, since many are passed by at once. Raises ``ValueError``."""
    at, size, seen = 0, len(data), 0
    while at < size:
        start = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at)
        kind = tag & 7
        content = at
        if kind == 2:
            length, content = (data[at], at + 1) if at < size and data[at] < 0x80 else _varint(data, at)
            at = content + length
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of wire type {kind}, which OTLP does not have")
        if at > size:
            raise ValueError("the message ends within a field")
        end, copies = at, 1
        seen += 1
        if seen % _RUN == 0 and at - start <= 64:
            block = data[start:at] * _RUN
            while data.startswith(block, at):
                at, copies = at + len(block), copies + _RUN
        yield tag, start, content, end, copies


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
