"""Bounded details of third-party metrics."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.result import bounded, cut


def nested(deep: int) -> Any:
    value: Any = 1
    for _ in range(deep):
        value = [value]
    return value


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"words": 7, "spans": ["a", "b"], "by": {"x": 1.0, "y": None}},
        {"values": list(range(3990))},
        {"text": "x" * 200_000},
        {"own": object()},
        {"deep": nested(90)},
    ],
)
def test_ordinary_details_are_kept_unchanged(details: dict[str, Any]) -> None:
    assert bounded(details) is details


@pytest.mark.parametrize(
    ("details", "first"),
    [
        ({"values": list(range(200_000))}, {"values": list(range(3998))}),
        ({"values": [[0] * 100] * 300}, None),
        ({"a": 7, "text": "x" * 5_000_000}, {"a": 7, "text": cut("x" * 5000, 2000)}),
        ({"text": ["x" * 2000] * 5000}, None),
        ({"x" * 2_000_000: 1}, {cut("x" * 5000, 2000): 1}),
        ({str(number): number for number in range(10_000)}, {str(number): number for number in range(3999)}),
        ({"a": 7, "deep": nested(5000)}, None),
    ],
)
def test_too_large_details_keep_the_first_values_and_a_note(
    details: dict[str, Any], first: dict[str, Any] | None
) -> None:
    found = dict(bounded(details))
    assert found.pop("left_out") == "there were more details than are kept"
    assert found.keys() <= {cut(key, 2000) for key in details}
    if first is not None:
        assert found == first
    assert bounded(found) is found or first is None
    assert len(repr(found)) < 700_000
