"""OTLP requests written byte by byte: what no encoder makes, and many of it at once."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number as protobuf writes it; a negative one takes ten bytes."""
    number &= 2**64 - 1
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def in_scope(items: bytes) -> bytes:
    """A request with one scope that holds ``items``."""
    return field(1, field(2, items))


def in_item(content: bytes) -> bytes:
    """A request with one span or log record that holds ``content``."""
    return in_scope(field(2, content))


def in_value(content: bytes) -> bytes:
    """A request with one span whose attribute has a value of this content."""
    return in_item(field(9, field(2, content)))


def tiny_spans(number: int, traces: int = 1) -> bytes:
    """A request of the smallest spans that are valid: 30 bytes each."""
    spans = (
        field(2, field(1, (1 + at % traces).to_bytes(16, "big")) + field(2, (1 + at).to_bytes(8, "big")))
        for at in range(number)
    )
    return in_scope(b"".join(spans))


def nested_value(depth: int) -> bytes:
    """A request whose attribute is an array in an array, ``depth`` deep."""
    value = b""
    for _ in range(depth):
        value = field(5, field(1, value))
    return in_value(value)
