"""OTLP requests written byte by byte: what no encoder makes, and many of it at once."""

from __future__ import annotations


def varint(number: int) -> bytes:
    written = b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


def part(field: int, content: bytes) -> bytes:
    """A field that holds ``content``."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def in_scope(items: bytes) -> bytes:
    """A request with one scope that holds ``items``."""
    return part(1, part(2, items))


def in_item(content: bytes) -> bytes:
    """A request with one span or log record that holds ``content``."""
    return in_scope(part(2, content))


def in_value(content: bytes) -> bytes:
    """A request with one span whose attribute has a value of this content."""
    return in_item(part(9, part(2, content)))


def tiny_spans(number: int, traces: int = 1) -> bytes:
    """A request of the smallest spans that are valid: 30 bytes each."""
    spans = (
        part(2, part(1, (1 + at % traces).to_bytes(16, "big")) + part(2, (1 + at).to_bytes(8, "big")))
        for at in range(number)
    )
    return in_scope(b"".join(spans))


def nested_value(depth: int) -> bytes:
    """A request whose attribute is an array in an array, ``depth`` deep."""
    value = b""
    for _ in range(depth):
        value = part(5, part(1, value))
    return in_value(value)
