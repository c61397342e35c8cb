"""Caches save time and do not change results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pandaeval_otel.base import _json
from pandaeval_otel.base.recent import KEPT, MAX_CHARS, GrowingList, Recent
from pandaeval_otel.dialects._messages import _read, read_messages

_NUMBERS = st.sampled_from([1, 1.0, True])
_PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "content": text}, st.text(max_size=20)),
    st.builds(lambda value: {"type": "tool_call", "name": "t", "arguments": {"n": value}}, _NUMBERS),
    st.just({"type": "text", "content": "<elided>"}),
)
_ITEMS = st.one_of(
    st.builds(
        lambda role, parts: {"role": role, "parts": parts},
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(_PARTS, max_size=3),
    ),
    _PARTS,  # parts outside a message are collected in one message
    st.just({"role": "user", "content": "in another form"}),
    st.builds(
        lambda text: {"role": "user", "content": json.dumps([{"type": "text", "text": text}])}, st.text(max_size=9)
    ),
    st.just({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "t"}}]}),
    st.just({"role": "tool", "tool_call_id": "c", "content": '{"quoted": "\\"[]\\""}'}),
    st.sampled_from([7, "text", None, ["user", "a pair"]]),
)


class _Noted:
    """Reads a text as its length and counts calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


class TestRecent:
    def test_reads_a_recent_text_only_once(self) -> None:
        noted = _Noted()
        recent = Recent(noted)
        assert [recent("a"), recent("bb"), recent("a")] == [1, 2, 1]
        assert noted.asked == ["a", "bb"]

    def test_keeps_only_the_last_text_of_each_length(self) -> None:
        noted = _Noted()
        recent = Recent(noted)
        assert [recent("first"), recent("other"), recent("first")] == [5, 5, 5]
        assert noted.asked == ["first", "other", "first"]

    @pytest.mark.parametrize(("others", "readings"), [(KEPT - 1, 1), (2 * KEPT, 2)])
    def test_forgets_a_text_after_texts_of_many_other_lengths(self, others: int, readings: int) -> None:
        noted = _Noted()
        recent = Recent(noted)
        for text in ("first", *("x" * (10 + size) for size in range(others)), "first"):
            recent(text)
        assert noted.asked.count("first") == readings

    def test_keeps_no_long_text(self) -> None:
        noted = _Noted()
        recent = Recent(noted)
        assert recent("x" * (MAX_CHARS + 1)) == recent("x" * (MAX_CHARS + 1)) == MAX_CHARS + 1
        assert len(noted.asked) == 2


class TestGrowingList:
    @pytest.mark.parametrize(
        ("text", "split"),
        [
            ("[1, 2, 3]", ("one and two", "[ 3]")),
            ("[1, 2 , 3]", ("one and two", "[ 3]")),
            ("[1, 2]", None),
            ("[1, 23]", None),
            ("[1]", None),
            ("[1, 2", None),
        ],
    )
    def test_splits_off_the_new_items(self, text: str, split: tuple[str, str] | None) -> None:
        grown: GrowingList[str] = GrowingList()
        grown.keep("[1, 2]", "one and two")
        assert grown.split(text) == split

    @given(st.lists(_ITEMS, max_size=6), st.lists(_ITEMS, max_size=3))
    def test_a_grown_conversation_reads_the_same_as_without_the_cache(self, before: list[Any], more: list[Any]) -> None:
        read_messages(json.dumps(before), "user")
        grown = before + more
        # repr distinguishes 1, 1.0 and True
        assert repr(read_messages(json.dumps(grown), "user")) == repr(read_messages(grown, "user"))

    @given(st.lists(_ITEMS, min_size=1, max_size=5), st.lists(_ITEMS, max_size=3), st.data())
    def test_a_changed_or_cut_history_reads_the_same_as_without_the_cache(
        self, before: list[Any], more: list[Any], data: st.DataObject
    ) -> None:
        first, grown = json.dumps(before), json.dumps(before + more)
        place = data.draw(st.integers(0, len(grown)))
        sign = data.draw(st.sampled_from(["", "x", '"', "]", "[", "\\", ",", " "]))
        for text in (grown[:place] + sign + grown[place + 1 :], grown[:place], json.dumps(grown)):
            for role in ("user", "assistant"):
                read_messages(first, role)
                assert repr(read_messages(text, role)) == repr(_read(text, role))

    @pytest.mark.parametrize("end", [",]", ', {"role": "user", "parts": [{"type": "text", "con', ", 7]"])
    def test_a_continuation_that_is_no_message_reads_the_same_as_without_the_cache(self, end: str) -> None:
        first = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"Before {end}"}]}])
        fresh = read_messages(first[:-1].replace("Before", "Bafore") + end, "user")
        read_messages(first, "user")
        assert repr(read_messages(first[:-1] + end, "user")).replace("Before", "Bafore") == repr(fresh)


class TestJson:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('{"a": [1, 2.5, null, true, "é"]}', {"a": [1, 2.5, None, True, "é"]}),
            ("[NaN, -Infinity]", ["NaN", "-Infinity"]),
            ("1e999", "1e999"),
            ("9" * 400, "9" * 400),
            ("18446744073709551615", 18446744073709551615),
            ("-9223372036854775808", -9223372036854775808),
            ("123456789012345678901", 1.2345678901234568e20),
            (r'"\ud83d\ude00 \ud800 \\ud800"', "😀 \ufffd \\ud800"),
        ],
    )
    def test_is_the_same_with_and_without_orjson(self, text: str, value: Any) -> None:
        for found in (_json.loads(text), _json._thorough(text)):
            assert (found, type(found)) == (value, type(value))

    @pytest.mark.parametrize("text", ["", "[1,]", "{'a': 1}", '"\x01"', "[1] 2", "\ufeff[]"])
    def test_invalid_json_is_an_error(self, text: str) -> None:
        for read in (_json.loads, _json._thorough):
            with pytest.raises(ValueError):
                read(text)
