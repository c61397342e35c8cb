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
def test_what_reorders_or_hides_text_is_written_out(text: str) -> None:
    shown = clean(text)
    assert not {unicodedata.bidirectional(letter) for letter in shown} & {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI"}
    assert not {letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs")} - {"\n", "\t"}
    shown.encode()


def test_words_of_any_script_stay() -> None:
    text = "naïve 東京 שלום مرحبا 👩‍💻 <b>&amp;</b>\n\tend"
    assert clean(text) == text


@pytest.mark.parametrize(("text", "shown"), [("a\u202eb", r"a\u202eb"), ("\x1b[2J", r"\x1b[2J"), ("\ud800", r"\ud800")])
def test_unsafe_characters_are_named(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_long_text_keeps_both_ends_and_says_its_length() -> None:
    assert cut("short", 5) == "short"
    assert cut("a" * 60 + "b" * 40, 30) == {"h": "a" * 20, "t": "b" * 10, "n": 100}


@given(any_text, st.integers(2, 50))
def test_an_excerpt_is_one_short_line(text: str, room: int) -> None:
    line = excerpt(text.replace("\u202e", ""), room)
    assert line is not None
    assert "\n" not in line
    assert excerpt(None, room) is None


def test_an_excerpt_says_that_it_was_cut() -> None:
    assert excerpt("one  two\nthree", 20) == "one two three"
    assert excerpt("word " * 40, 20) == "word word word word…"


@given(any_value)
def test_any_value_becomes_json(value: object) -> None:
    orjson.dumps(pruned(value))
    assert isinstance(written(value), str)


def test_pruning_says_what_is_missing() -> None:
    assert pruned(list(range(300)))[-1] == "… 200 more"
    assert pruned({str(n): n for n in range(300)})["…"] == "200 more"
    assert pruned("x" * 1000, 10) == "xxxxxxxxxx… (1,000 characters)"
    assert pruned(2**60) == str(2**60)


def test_texts_are_kept_once_and_within_their_room() -> None:
    texts = TextPool(1000)
    assert texts.add("system prompt") == texts.add("system prompt") == 0
    for number in range(50):
        texts.add(f"{number} " + "y" * 5000)
    kept = [len(each) if isinstance(each, str) else len(each["h"]) + len(each["t"]) for each in texts.kept]
    assert sum(kept[:5]) <= 1200
    assert kept[-1] == 120
    assert texts.kept[-1]["n"] == 5003  # type: ignore[index]


def test_json_is_clean_in_its_names_and_texts_and_says_the_same_otherwise() -> None:
    said = {"a\u202eb": ["x\x1b[2J\x9b", "line\nnext\ttab", 'quote " and \\u001b as text', "\x7f\b\r\u200b"], "n": 1.5}
    assert orjson.loads(clean_json(orjson.dumps(said))) == {
        "a\\u202eb": ["x\\u001b[2J\\x9b", "line\nnext\ttab", 'quote " and \\u001b as text', "\\x7f\\b\\r\\u200b"],
        "n": 1.5,
    }
