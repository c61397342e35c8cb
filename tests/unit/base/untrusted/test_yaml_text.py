"""YAML and JSON with line numbers."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.untrusted.yaml_text import BadTextError, parse
from pandaeval_lab.cases.files import read_json


def test_yaml_scalars_have_the_types_of_json() -> None:
    content = parse("a: [yes, 2026-01-09, 12:30, 0x1, .5, 1e3, true, ~]\nb: {c: 1}\n")
    assert content.value == {"a": ["yes", "2026-01-09", "12:30", "0x1", 0.5, 1000.0, True, None], "b": {"c": 1}}
    assert (content.lines["a",], content.lines["b", "c"]) == (1, 2)
    assert parse("\n# nothing\n").value is None


def test_json_has_line_numbers_if_yaml_can_read_it() -> None:
    content = read_json('{\n\t"a": [1,\n2]}')
    assert content.value == {"a": [1, 2]}
    assert content.lines["a", 1] == 3
    assert read_json('["\\ud800"]').value == ["\ud800"]
    assert read_json('["\x7f"]').value == ["\x7f"]


@pytest.mark.parametrize(
    ("read", "text", "line", "message"),
    [
        (parse, "a: 1\nb: 2\na: 3", 3, "a is given twice"),
        (parse, "a:\n  &x {y: *x}", 2, "refers to itself"),
        (parse, "a: [", 1, "is not valid YAML"),
        (parse, "a: 1\n---\nb: 2", 2, "another document"),
        (parse, "[" * 50_000, None, "nested too deeply"),
        (parse, "? [1]\n: 2", 1, "a list or map is not a key"),
        (read_json, '{"a": 1,\n "a": 2}', 2, "a is given twice"),
        (read_json, '{"a": 1, // no comment\n}', 1, "is not valid JSON"),
        (read_json, "[" * 50_000, None, "recursion"),
        (read_json, "[NaN]", None, "NaN is not a JSON number"),
    ],
)
def test_invalid_yaml_or_json_is_an_error_with_its_line(read: Any, text: str, line: int | None, message: str) -> None:
    with pytest.raises(BadTextError, match=message) as caught:
        read(text)
    assert (caught.value.spot and caught.value.spot.line) == line


def test_an_alias_can_be_used_several_times() -> None:
    assert parse("a: &x {y: 1}\nb: *x\nc: [*x, *x]").value == {"a": {"y": 1}, "b": {"y": 1}, "c": [{"y": 1}] * 2}
