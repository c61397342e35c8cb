"""OTLP requests written byte by byte."""

from __future__ import annotations


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def in_scope(items: bytes) -> bytes:
    return field(1, field(2, items))


def in_item(content: bytes) -> bytes:
    return in_scope(field(2, content))


def in_value(content: bytes) -> bytes:
    return in_item(field(9, field(2, content)))


def tiny_spans(number: int, traces: int = 1) -> bytes:
    spans = (
        field(2, field(1, (1 + at % traces).to_bytes(16, "big")) + field(2, (1 + at).to_bytes(8, "big")))
        for at in range(number)
    )
    return in_scope(b"".join(spans))


def nested_value(depth: int) -> bytes:
    value = b""
    for _ in range(depth):
        value = field(5, field(1, value))
    return in_value(value)
