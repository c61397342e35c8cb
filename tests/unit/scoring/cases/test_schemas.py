"""Bounded cost of untrusted JSON schemas."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_lab.cases.model import OutputFormat
from pandaeval_lab.cases.schemas import BadSchemaError, schema_errors
from pandaeval_lab.cases.states import faults


def doubled(depth: int) -> dict[str, Any]:
    """Return a schema with exponential references."""
    parts: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(depth)}
    return {"$defs": {**parts, f"d{depth}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def test_a_schema_that_would_take_for_ever_holds_nothing() -> None:
    assert schema_errors(doubled(5), {}) == []
    assert schema_errors(doubled(5), 1)
    with pytest.raises(BadSchemaError, match="100,000 steps"):
        schema_errors(doubled(18), {})
    assert schema_errors(doubled(5), {}) == [], "each value has steps of its own"


def test_items_that_can_only_be_compared_each_with_each_are_bounded() -> None:
    unique = {"uniqueItems": True}
    for items in ([str(at) for at in range(5_000)], [*range(5_000)], [{"a": at} for at in range(200)], [1, "1", None]):
        assert schema_errors(unique, items) == []
        assert len(schema_errors(unique, [*items, items[0]])) == 1
    with pytest.raises(BadSchemaError):
        schema_errors(unique, [{"a": at} for at in range(5_000)])


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ('{"a": 1}', True),
        ('```json\n{"a": 1}\n```', True),
        (' \n```\n\n{"a": 1}```\n', True),
        ('```json  \n{"a": 1}\n\n  ```', True),
        ('```python\n{"a": 1}\n```', False),
        ('```json\n{"a": 1}', False),
        ("```", False),
        ("``````", False),
        ("```\n" + " \n" * 100_000, False),
    ],
)
def test_a_fence_of_markdown_is_taken_off(answer: str, holds: bool) -> None:
    assert (not [*faults(OutputFormat(type="json"), answer, [])]) == holds
