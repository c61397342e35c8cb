"""JSON schemas of cases and tools, and JSON answers."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_lab.cases.model import OutputFormat
from pandaeval_lab.cases.schemas import BadSchemaError, schema_errors
from pandaeval_lab.cases.states import format_faults


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"type": "object", "required": ["id"]}, {"id": 7}, 0),
        ({"type": "object", "required": ["id"]}, {}, 1),
        ({"$defs": {"name": {"type": "string"}}, "items": {"$ref": "#/$defs/name"}}, ["desk", 7], 1),
        ({"pattern": "^[A-Z]{3}$"}, "abc", 1),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}], 1),
    ],
)
def test_values_that_violate_a_schema_have_an_error(schema: dict[str, Any], value: Any, errors: int) -> None:
    assert len(schema_errors(schema, value)) == errors


def test_schema_with_a_circular_or_missing_reference_is_rejected() -> None:
    for schema in ({"$ref": "#"}, {"$ref": "#/$defs/absent"}):
        with pytest.raises(BadSchemaError, match="missing definition, or to itself"):
            schema_errors(schema, {})


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
def test_markdown_fence_around_json_is_removed(answer: str, holds: bool) -> None:
    assert (not [*format_faults(OutputFormat(type="json"), answer, [])]) == holds
