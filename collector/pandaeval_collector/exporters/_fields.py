"""Protobuf fields as bytes. Repeated content is encoded once and cached."""

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
    """Encode a field of bytes, text or a message; nothing if empty. ``number`` < 16."""
    return bytes((number << 3 | 2,)) + varint(len(data)) + data if data else b""


def measured(message: bytes) -> bytes:
    return varint(len(message)) + message


def tag(number: int) -> bytes:
    """Encode the tag of a length-prefixed field. ``number`` < 16."""
    return bytes((number << 3 | 2,))


def repeated(tag: bytes, messages: Sequence[bytes]) -> bytes:
    return tag + tag.join(messages) if messages else b""


def text_pair(key: str, value: str | None) -> tuple[bytes, ...]:
    """Encode a length-prefixed attribute; nothing without a value."""
    if not value:
        return ()
    text = value.encode()
    return (before_text(key, len(text)) + text,)


def number_pair(key: str, value: float | None) -> tuple[bytes, ...]:
    """Encode a length-prefixed attribute; nothing without a value."""
    return () if value is None else (before_number(key) + double(value),)


def pairs(facts: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Encode length-prefixed attributes. Skips missing values and empty texts, but not empty lists."""
    return tuple(
        measured(KeyValue(key=key, value=_value(value)).SerializeToString())
        for key, value in facts.items()
        if value is not None and value != ""
    )


@lru_cache(maxsize=4096)
def before_text(key: str, size: int) -> bytes:
    text = b"\x0a" + varint(size)
    pair = _key(key) + b"\x12" + varint(len(text) + size) + text
    return varint(len(pair) + size) + pair


@lru_cache(maxsize=1024)
def before_number(key: str) -> bytes:
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
