"""Report texts: safe, bounded, marked if cut."""

from __future__ import annotations

import unicodedata

import orjson
import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.show.report.text import TextPool, clean_json, cut, pruned, written

any_text = st.text(st.characters(codec=None, categories=None))
any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
)


@given(any_text)
def test_control_and_reordering_characters_are_escaped(text: str) -> None:
    shown = clean(text)
    assert not {unicodedata.bidirectional(letter) for letter in shown} & {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI"}
    assert not {letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs")} - {"\n", "\t"}
    shown.encode()


def test_texts_of_any_script_are_unchanged() -> None:
    text = "naïve 東京 שלום مرحبا 👩‍💻 <b>&amp;</b>\n\tend"
    assert clean(text) == text


@pytest.mark.parametrize(("text", "shown"), [("a\u202eb", r"a\u202eb"), ("\x1b[2J", r"\x1b[2J"), ("\ud800", r"\ud800")])
def test_unsafe_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_long_text_keeps_both_ends_and_its_length() -> None:
    assert cut("short", 5) == "short"
    assert cut("a" * 60 + "b" * 40, 30) == {"h": "a" * 20, "t": "b" * 10, "n": 100}


@given(any_text, st.integers(2, 50))
def test_an_excerpt_is_a_single_line(text: str, room: int) -> None:
    line = excerpt(text.replace("\u202e", ""), room)
    assert line is not None
    assert "\n" not in line
    assert excerpt(None, room) is None


def test_a_shortened_excerpt_ends_with_an_ellipsis() -> None:
    assert excerpt("one  two\nthree", 20) == "one two three"
    assert excerpt("word " * 40, 20) == "word word word word…"


@given(any_value)
def test_any_value_becomes_json(value: object) -> None:
    orjson.dumps(pruned(value))
    assert isinstance(written(value), str)


def test_pruned_values_show_how_much_is_missing() -> None:
    assert pruned(list(range(300)))[-1] == "… 200 more"
    assert pruned({str(n): n for n in range(300)})["…"] == "200 more"
    assert pruned("x" * 1000, 10) == "xxxxxxxxxx… (1,000 characters)"
    assert pruned(2**60) == str(2**60)


def test_the_text_pool_keeps_each_text_once_and_within_its_limit() -> None:
    texts = TextPool(1000)
    assert texts.add("system prompt") == texts.add("system prompt") == 0
    for number in range(50):
        texts.add(f"{number} " + "y" * 5000)
    kept = [len(each) if isinstance(each, str) else len(each["h"]) + len(each["t"]) for each in texts.kept]
    assert sum(kept[:5]) <= 1200
    assert kept[-1] == 120
    assert texts.kept[-1]["n"] == 5003  # type: ignore[index]


def test_clean_json_escapes_unsafe_characters_and_keeps_the_rest() -> None:
    said = {"a\u202eb": ["x\x1b[2J\x9b", "line\nnext\ttab", 'quote " and \\u001b as text', "\x7f\b\r\u200b"], "n": 1.5}
    assert orjson.loads(clean_json(orjson.dumps(said))) == {
        "a\\u202eb": ["x\\u001b[2J\\x9b", "line\nnext\ttab", 'quote " and \\u001b as text', "\\x7f\\b\\r\\u200b"],
        "n": 1.5,
    }
