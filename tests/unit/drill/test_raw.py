"""The writer finds every encoding of a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pandaeval_lab.drill.edits import text_change
from pandaeval_lab.drill.raw import RawTrace, rewritten
from support.drilled import conversation

OLD, NEW = 'She said "yes": 50 % of Zürich\nis hers', 'He said "no"\\'


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        lambda text: f"so: {text}!",
        lambda text: json.dumps([{"content": text}]),
        lambda text: json.dumps({"a": json.dumps({"b": [text]}, ensure_ascii=False)}),
        lambda text: [{"x": text}],
        lambda text: f"reply={json.dumps({'content': text})} end",
        lambda text: f"Message(content={text!r})",
    ],
)
def test_a_text_is_replaced_in_every_encoding(spell: Any) -> None:
    made = rewritten(spell(OLD), text_change(OLD, NEW))
    if isinstance(made, str) and made.startswith(("[", "{")):
        made, wanted = json.loads(made), json.loads(spell(NEW))
        assert _deep(made) == _deep(wanted)
    else:
        assert made == spell(NEW)


def _deep(held: Any) -> Any:
    if isinstance(held, str) and held[:1] in "[{":
        return json.loads(held)
    return {key: _deep(each) for key, each in held.items()} if isinstance(held, dict) else held


def test_a_short_text_is_replaced_only_if_it_is_the_whole_value() -> None:
    held = json.dumps(["ok", "the book is ok"])
    assert json.loads(rewritten(held, text_change("ok", "no"))) == ["no", "the book is ok"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    )
)
def test_unchanged_values_stay_the_same_object(held: Any) -> None:
    assert rewritten(held, lambda each: each) is held


def test_a_rewrite_without_changes_keeps_the_same_bytes() -> None:
    parts = [(False, conversation()[1])]
    raw = RawTrace(parts)
    raw.rewrite(lambda held: held)
    assert raw.parts() == parts
    assert not raw.touched
