"""Protobuf message fields as bytes, to be concatenated.

Repeated content is encoded once by ``opentelemetry-proto`` and cached; only the differing fields are built here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from pandaeval_otel.wire import fields

fixed64 = struct.Struct("<Q").pack
double = struct.Struct("<d").pack
varint = lru_cache(maxsize=4096)(fields.varint)


def sized(number: int, data: bytes) -> bytes:
    """Encode a field of bytes, text or a message; an empty field takes no bytes. ``number`` < 16."""
    return bytes((number << 3 | 2,)) + varint(len(data)) + data if data else b""


def measured(message: bytes) -> bytes:
    """Put the length of an encoded message before it."""
    return varint(len(message)) + message


def tag(number: int) -> bytes:
    """Encode the tag of a field of bytes, text or a message. ``number`` < 16."""
    return bytes((number << 3 | 2,))


def repeated(tag: bytes, messages: Sequence[bytes]) -> bytes:
    """Encode a repeated field of messages, each with its length before it."""
    return tag + tag.join(messages) if messages else b""


def text_pair(key: str, value: str | None) -> tuple[bytes, ...]:
    """Encode an attribute behind its length; nothing without a value."""
    if not value:
        return ()
    text = value.encode()
    return (before_text(key, len(text)) + text,)


def number_pair(key: str, value: float | None) -> tuple[bytes, ...]:
    """Encode an attribute behind its length; nothing without a value."""
    return () if value is None else (before_number(key) + double(value),)


def pairs(facts: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Encode attributes, each behind its length. Attributes without a value are left out; an empty list is a value, an
    empty text is not."""
    return tuple(
        measured(KeyValue(key=key, value=_value(value)).SerializeToString())
        for key, value in facts.items()
        if value is not None and value != ""
    )


@lru_cache(maxsize=4096)
def before_text(key: str, size: int) -> bytes:
    """Encode an attribute up to its text of ``size`` bytes."""
    text = b"\x0a" + varint(size)
    pair = _key(key) + b"\x12" + varint(len(text) + size) + text
    return varint(len(pair) + size) + pair


@lru_cache(maxsize=1024)
def before_number(key: str) -> bytes:
    """Encode an attribute up to its eight-byte number."""
    pair = _key(key) + b"\x12\x09\x21"
    return varint(len(pair) + 8) + pair


def _key(key: str) -> bytes:
    encoded: bytes = KeyValue(key=key).SerializeToString()
    return encoded


def _value(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=[_value(item) for item in value]))
        case _:
            return AnyValue(string_value=str(value))
