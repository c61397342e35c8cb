"""Durations and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.base.section import format_duration, format_size, parse_duration, parse_size

_CENTURY = 100 * 365 * 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("15m", 900.0),
        ("250ms", 0.25),
        ("24h", 86400.0),
        ("7d", 604800.0),
        ("1h30m", 5400.0),
        ("1d 2h", 93600.0),
        ("0.1m", 6.0),
        ("1.5 s", 1.5),
        (" 5s ", 5.0),
    ],
)
def test_a_duration_becomes_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "wrong",
    [
        *("ten", "", " ", "10,5s", "s", "10 x", "5S", "-5s", "1m1h", "1e3s", "10s!", "٣s", "36501d", "9" * 5000),
        *("90", 90, 0, 0.5, -1, None, True, [], float("nan"), float("inf")),
    ],
)
def test_invalid_durations_are_an_error(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; write 10s, 15m or 24h"):
        parse_duration(wrong)


@pytest.mark.parametrize(
    "usual", ["0s", "250ms", "10s", "60s", "90s", "180s", "10m", "30m", "1h", "24h", "36h", "2d", "7d"]
)
def test_common_durations_are_formatted_unchanged(usual: str) -> None:
    assert format_duration(parse_duration(usual)) == usual


@given(st.floats(min_value=0, max_value=_CENTURY) | st.integers(0, _CENTURY).map(float))
def test_a_duration_survives_printing(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32MiB", 32 << 20),
        ("10GiB", 10 << 30),
        ("1MB", 10**6),
        ("1kB", 1000),
        ("1KB", 1000),
        ("0.5 KiB", 512),
        ("7B", 7),
        ("2TiB", 2 << 40),
    ],
)
def test_a_size_becomes_bytes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "wrong", ["big", "", "12XB", "32 M", "-1MB", "123", 123, -1, None, True, {}, "9999999TiB", 1.5, float("inf")]
)
def test_invalid_sizes_are_an_error(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"is not a size; write 32MiB or 1MB"):
        parse_size(wrong)


@pytest.mark.parametrize("wrong", ["0.3KiB", "1.5B"])
def test_a_fraction_of_a_byte_is_an_error(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a whole number of bytes"):
        parse_size(wrong)


@given(st.integers(0, (1 << 63) - 1))
def test_a_size_survives_printing(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("size", "text"), [(32 << 20, "32MiB"), (10**6, "1MB"), (1023, "1023B"), (0, "0B"), (1 << 40, "1TiB")]
)
def test_sizes_are_shown_in_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert format_size(size) == text
