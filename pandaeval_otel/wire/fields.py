"""Walks and writes fields of encoded protobuf messages without parsing."""

from __future__ import annotations

from collections.abc import Iterator

_FIXED = {1: 8, 5: 4}
"""Bytes of fixed-length numbers, by wire type."""
_RUN = 1024
"""Number of equal consecutive fields compared at once."""


def entry(pair: bytes) -> tuple[bytes, bytes]:
    """Return key and value of a map entry; empty for a missing part. Raises ``ValueError``."""
    key = value = b""
    for tag, _, at, end, _ in fields(pair):
        if tag == 0x0A:
            key = pair[at:end]
        elif tag == 0x12:
            value = pair[at:end]
    return key, value


def pair(key: bytes, value: bytes) -> bytes:
    return field(0x0A, key) + field(0x12, value)


def number_in(encoded: bytes | None) -> int:
    if encoded is None:
        return 0
    _, at = read_varint(encoded, 0)
    return read_varint(encoded, at)[0]


def field(tag: int, content: bytes) -> bytes:
    """Encode a length-delimited field; ``tag`` includes the wire type."""
    return varint(tag) + varint(len(content)) + content


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and its end. Raises ``ValueError``."""
    number = shift = 0
    for end in range(at, min(at + 10, len(data))):
        byte = data[end]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, end + 1
        shift += 7
    raise ValueError("the message ends within a number")


def fields(data: bytes, at: int = 0, size: int | None = None) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield tag, field start, content start and end, and the number of equal fields in a row. Raises ``ValueError``."""
    size = len(data) if size is None else size
    seen = 0
    while at < size:
        start = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = read_varint(data, at)
        if tag & 7 == 2 and at < size and data[at] < 0x80:  # as most fields: a call would take as long as all the rest
            content = at + 1
            end = content + data[at]
        else:
            content, end = _content(data, at, tag & 7)
        if end > size:
            raise ValueError("the message ends within a field")
        at, copies = end, 1
        seen += 1
        if seen % _RUN == 0 and at - start <= 64:
            block = data[start:at] * _RUN
            while data.startswith(block, at, size):
                at, copies = at + len(block), copies + _RUN
        yield tag, start, content, end, copies


def _content(data: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind == 2:
        length, at = read_varint(data, at)
        return at, at + length
    if kind == 0:
        return at, read_varint(data, at)[1]
    if kind == 3:
        return at, _group_end(data, at)
    if kind not in _FIXED:
        raise ValueError(f"a field of wire type {kind}, which protobuf does not have here")
    return at, at + _FIXED[kind]


def _group_end(data: bytes, at: int) -> int:
    depth = 1
    while depth:
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 3:
            depth += 1
        elif kind == 4:
            depth -= 1
        else:
            at = _content(data, at, kind)[1]
    return at
