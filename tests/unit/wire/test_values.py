"""Parsing of attribute values of any type."""

from __future__ import annotations

import json
import warnings

import pytest

from pandaeval_otel.base._json import too_deep
from pandaeval_otel.dialects import _values
from pandaeval_otel.dialects._values import as_list, count, hidden, identifier, parsed, salvage


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  [1, 2]  ", [1, 2]),
        ('"\\"AGENT\\""', "AGENT"),
        (json.dumps(json.dumps({"a": [1]})), {"a": [1]}),
        (json.dumps(json.dumps(json.dumps([1]))), [1]),
        ("{'a': 1, 'b': None}", {"a": 1, "b": None}),
        ("('x', 2)", ["x", 2]),
        ("{(1, 2): b'x', 3: {4}}", {"(1, 2)": "b'x'", "3": [4]}),
        (b'{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        (None, None),
        (True, True),
    ],
)
def test_parsed_reads_json_json_in_json_and_python_reprs(value: object, expected: object) -> None:
    assert parsed(value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "42",
        "true",
        "null",
        '{"a": 1',
        "[ChatMessage(_role='user')]",
        "{'a': open('x')}",
        "(see above)",
        '"Hello" she said',
        r"['\w+']",
        "[1if 2else 3]",
        "['\\ud800']",
        "[" * 5000,
        "{" * 5000 + "}" * 5000,
        "'" * 5000,
    ],
)
def test_parsed_returns_every_other_text_unchanged(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parsed(text) == text


def test_parsed_is_bounded_in_depth_size_and_layers() -> None:
    deep = "[" * (_values.MAX_DEPTH + 1) + "]" * (_values.MAX_DEPTH + 1)
    assert parsed(deep) == deep
    fits = "[" * _values.MAX_DEPTH + "]" * _values.MAX_DEPTH
    assert isinstance(parsed(fits), list)
    layers = json.dumps(json.dumps(json.dumps(json.dumps("x"))))
    assert parsed(layers) == '"x"'
    huge_repr = "{'a': '" + "x" * _values.MAX_REPR + "'}"
    assert parsed(huge_repr) == huge_repr


def test_parsed_returns_too_large_json_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_values, "MAX_JSON", 10)
    assert parsed('{"a": 12345}') == '{"a": 12345}'


def test_parsed_replaces_values_that_json_cannot_write() -> None:
    found = parsed('{"a": NaN, "b": -Infinity, "c": "\\ud800", "d": "\\ud83d\\ude00", "e": "\\\\ud800"}')
    assert found == {"a": "NaN", "b": "-Infinity", "c": "\ufffd", "d": "\U0001f600", "e": "\\ud800"}
    json.dumps(found, allow_nan=False).encode()


def test_parsed_returns_none_for_bytes_that_are_no_text() -> None:
    assert parsed(b"\xff\xfe") is None


def test_too_deep_counts_containers_of_all_kinds() -> None:
    value: object = 1
    for _ in range(_values.MAX_DEPTH // 2):
        value = {"a": (value,)}
    assert not too_deep(value)
    assert too_deep([value])


@pytest.mark.parametrize(
    "word", ["<elided>", "<REDACTED>", "[REDACTED]", "__REDACTED__", "<not specified>", " <elided> "]
)
def test_redaction_placeholders_are_hidden_and_are_no_identifiers(word: str) -> None:
    assert hidden(word)
    assert identifier(word) == ""


@pytest.mark.parametrize("word", ["unknown", "N/A", "", "{}", "none"])
def test_words_for_a_missing_name_are_not_hidden_but_are_no_identifiers(word: str) -> None:
    assert not hidden(word)
    assert identifier(word) == ""


def test_identifier_is_short_text() -> None:
    assert identifier(" call_9 ") == "call_9"
    assert identifier(17) == "17"
    assert identifier("x" * 1000) == "x" * _values.MAX_ID
    odd: tuple[object, ...] = (None, True, 1.5, b"x", {}, [], ())
    assert {identifier(value) for value in odd} == {""}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3), (3.0, 3), ("3", 3), ("3.7", 3), (-1, 0), (True, None), ("many", None), (float("inf"), None), ([], None)],
)
def test_count_returns_a_whole_number_or_none(value: object, expected: int | None) -> None:
    assert count(value) == expected


def test_as_list_reads_json_tuples_and_single_values() -> None:
    assert as_list('["a", "b"]') == ["a", "b"]
    assert as_list(("a",)) == ["a"]
    assert as_list("a") == ["a"]
    assert as_list(None) == as_list("") == []


WHOLE = '[{"role": "user", "parts": [{"type": "text", "content": "Weather in \\u00c5s?"}]}, {"role": "assistant"}]'


def test_salvage_keeps_whole_items_and_the_beginning_of_the_cut_text() -> None:
    cut = WHOLE.index("ather")
    assert salvage(WHOLE[:cut]) == [{"role": "user", "parts": [{"type": "text", "content": "We"}]}]
    assert salvage(WHOLE[: WHOLE.index("00c5")]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather in "}]}
    ]
    assert salvage(WHOLE[: WHOLE.index('"role": "assistant"') + 8]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather in \u00c5s?"}]},
    ]


def test_salvage_never_invents_a_number_or_half_a_character() -> None:
    assert salvage('[{"n": 1, "price": 12') == [{"n": 1}]
    assert salvage('[{"n": 1, "ok": tru') == [{"n": 1}]
    assert salvage('["a\\ud83d\\ude') == ["a"]
    assert salvage('["a\\\\') == ["a\\"]
    assert salvage('["a\\') == ["a"]


@pytest.mark.parametrize(
    "text", ["", "[draft, hello", "{unclosed", WHOLE, "[]", '[{"', "[{", '{"a": 1}', '["a"]]', "x" * 50]
)
def test_salvage_returns_none_for_text_that_is_no_cut_json(text: str) -> None:
    assert salvage(text) is None


def test_salvage_reads_every_prefix_of_a_message_list() -> None:
    whole = json.loads(WHOLE)
    for end in range(len(WHOLE)):
        found = salvage(WHOLE[:end])
        assert found is None or isinstance(found, list)
        if found and len(found) == 2:
            assert found[0] == whole[0]
