"""Encoded fields against protobuf's own encoder."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.exporters._fields import (
    measured,
    number_pair,
    pairs,
    repeated,
    sized,
    tag,
    text_pair,
    varint,
)

ATTRIBUTES = 6
"""The field ``attributes`` of ``LogRecord``."""


def read(encoded: tuple[bytes, ...]) -> list[KeyValue]:
    return list(LogRecord.FromString(repeated(tag(ATTRIBUTES), encoded)).attributes)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 129, 16_383, 16_384, 1 << 32, (1 << 63) - 1])
def test_integers_are_encoded_as_by_protobuf(number: int) -> None:
    plain = LogRecord(dropped_attributes_count=number) if 0 < number < 1 << 32 else None
    if plain is not None:
        assert varint(number) == plain.SerializeToString()[1:]
    value = AnyValue(int_value=number).SerializeToString()
    assert varint(number) == value[1:]


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384])
def test_a_sized_field_equals_that_of_protobuf_and_is_empty_without_data(length: int) -> None:
    data = b"x" * length
    assert sized(9, data) == LogRecord(trace_id=data).SerializeToString()
    assert measured(data) == varint(length) + data


def test_each_repeated_field_begins_with_its_tag() -> None:
    assert [tag(number) for number in (1, 3, 15)] == [b"\x0a", b"\x1a", b"\x7a"]
    assert repeated(tag(1), []) == b""
    assert repeated(tag(1), [b"ab", b"c"]) == b"\x0aab\x0ac"


@pytest.mark.parametrize("value", ["a", "ü" * 70, "x" * 200, "x" * 20_000])
@pytest.mark.parametrize("key", ["k", "k" * 150])
def test_a_text_becomes_a_string_attribute(key: str, value: str) -> None:
    assert read(text_pair(key, value)) == [KeyValue(key=key, value=AnyValue(string_value=value))]


@pytest.mark.parametrize("value", [0.0, 0.75, -1.5, 1e300])
@pytest.mark.parametrize("key", ["k", "k" * 150])
def test_a_number_becomes_a_double_attribute(key: str, value: float) -> None:
    assert read(number_pair(key, value)) == [KeyValue(key=key, value=AnyValue(double_value=value))]


def test_missing_values_give_no_attribute() -> None:
    assert (text_pair("k", ""), text_pair("k", None), number_pair("k", None)) == ((), (), ())
    assert pairs({"a": None, "b": ""}) == ()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, AnyValue(bool_value=True)),
        (False, AnyValue(bool_value=False)),
        (0, AnyValue(int_value=0)),
        (0.0, AnyValue(double_value=0.0)),
        ("a", AnyValue(string_value="a")),
        ([], AnyValue(array_value=ArrayValue())),
        (["a", 1], AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="a"), AnyValue(int_value=1)]))),
    ],
)
def test_each_value_keeps_its_type(value: Any, written: AnyValue) -> None:
    assert read(pairs({"k": value, "none": None, "z": 1}))[0] == KeyValue(key="k", value=written)
    assert len(pairs({"k": value, "none": None, "z": 1})) == 2
