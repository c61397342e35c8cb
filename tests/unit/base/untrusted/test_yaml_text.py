"""YAML and JSON of people's own hand, with the line of everything."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.untrusted.yaml_text import BadTextError, read_yaml
from pandaeval_lab.cases.files import read_json


def test_yaml_has_the_words_of_json() -> None:
    held, lines = read_yaml("a: [yes, 2026-01-09, 12:30, 0x1, .5, 1e3, true, ~]\nb: {c: 1}\n")
    assert held == {"a": ["yes", "2026-01-09", "12:30", "0x1", 0.5, 1000.0, True, None], "b": {"c": 1}}
    assert (lines["a",], lines["b", "c"]) == (1, 2)
    assert read_yaml("\n# nothing\n") == (None, {})


def test_json_has_lines_too_where_yaml_can_read_it() -> None:
    held, lines = read_json('{\n\t"a": [1,\n2]}')
    assert held == {"a": [1, 2]}
    assert lines["a", 1] == 3
    assert read_json('["\\ud800"]')[0] == ["\ud800"]
    assert read_json('["\x7f"]') == (["\x7f"], {})


@pytest.mark.parametrize(
    ("read", "text", "line", "said"),
    [
        (read_yaml, "a: 1\nb: 2\na: 3", 3, "a is given twice"),
        (read_yaml, "a:\n  &x {y: *x}", 2, "refers to itself"),
        (read_yaml, "a: [", 1, "is not valid YAML"),
        (read_yaml, "a: 1\n---\nb: 2", 2, "another document"),
        (read_yaml, "[" * 50_000, None, "nested too deeply"),
        (read_yaml, "? [1]\n: 2", 1, "a list or map is not a key"),
        (read_json, '{"a": 1,\n "a": 2}', 2, "a is given twice"),
        (read_json, '{"a": 1, // no comment\n}', 1, "is not valid JSON"),
        (read_json, "[" * 50_000, None, "recursion"),
        (read_json, "[NaN]", None, "NaN is no number of JSON"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(read: Any, text: str, line: int | None, said: str) -> None:
    with pytest.raises(BadTextError, match=said) as caught:
        read(text)
    assert caught.value.faults[0][0] == line


def test_an_alias_that_is_used_twice_is_fine() -> None:
    assert read_yaml("a: &x {y: 1}\nb: *x\nc: [*x, *x]")[0] == {"a": {"y": 1}, "b": {"y": 1}, "c": [{"y": 1}] * 2}
