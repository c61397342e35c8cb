"""Linear time of untrusted regular expressions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pandaeval_lab.cases.schemas import BadSchemaError, PatternError, compiled, schema_errors

_ROOT = Path(__file__).parents[3]
_FOR_EVER = r"^(\w+\.?)+@example\.org$"
_TEXT = "a" * 60 + "!"
_SCHEMAS = {
    "pattern": ({"type": "string", "pattern": _FOR_EVER}, _TEXT),
    "propertyNames": ({"propertyNames": {"pattern": _FOR_EVER}}, {_TEXT: 1}),
}


def _ends(code: str) -> str:
    """Run in its own process, which may hang."""
    command = [sys.executable, "-c", code]
    path = {"PYTHONPATH": f"{_ROOT}:{_ROOT / 'collector'}"}
    return subprocess.run(command, env=path, timeout=60, capture_output=True, text=True, check=True).stdout.strip()


def test_pattern_that_hangs_the_engine_of_python_is_searched() -> None:
    code = f"from pandaeval_lab.cases.schemas import compiled; print(compiled({_FOR_EVER!r}).search({_TEXT!r}))"
    assert _ends(code) == "None"
    assert compiled(_FOR_EVER).search("jo.smith@example.org") is not None


@pytest.mark.parametrize(("keyword", "wrong"), [("pattern", 1), ("propertyNames", 1)])
def test_schema_with_a_catastrophic_pattern_is_checked(keyword: str, wrong: int) -> None:
    schema, value = _SCHEMAS[keyword]
    imports = "from pandaeval_lab.cases.schemas import schema_errors"
    assert _ends(f"{imports}; print(len(schema_errors({schema!r}, {value!r})))") == str(wrong)


@pytest.mark.parametrize("pattern", [r"(?=x)y", r"(?<!x)y", r"(a)\1", "(", r"a\Z", "x{2000}"])
def test_pattern_without_linear_search_is_rejected_with_a_hint(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"RE2's .*no lookaround"):
        compiled(pattern)
    with pytest.raises(BadSchemaError, match=r"unsupported pattern|is not a 'regex'"):
        schema_errors({"properties": {"a": {"pattern": pattern}}}, {"a": "x"})


def test_pattern_properties_are_rejected() -> None:
    with pytest.raises(BadSchemaError, match="write additionalProperties"):
        schema_errors({"patternProperties": {"^x": {}}}, {})


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"pattern": "^a+$"}, "aaa", []),
        ({"pattern": "^a+$"}, "ab", ["$: 'ab' does not match '^a+$'"]),
        ({"pattern": "^a+$"}, 7, []),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, []),
        ({"additionalProperties": {"type": "integer"}}, {"a": "x"}, ["$.a: 'x' is not of type 'integer'"]),
        ({"additionalProperties": False}, {"a": 1}, ["$: Additional properties are not allowed ('a' was unexpected)"]),
        ({"additionalProperties": False}, [1], []),
    ],
)
def test_schema_keywords_follow_the_json_schema_standard(schema: object, value: object, told: list[str]) -> None:
    assert schema_errors(schema, value) == told
