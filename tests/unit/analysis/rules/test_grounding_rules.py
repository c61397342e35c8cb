"""Terms that an agent states as its instructions have them, where those were captured and where they were not."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from pandaeval_collector.analysis.rules.grounding.before import _PLAIN_WORDS, before, pack
from pandaeval_collector.analysis.rules.grounding.grounding import Grounding, grounding
from pandaeval_collector.base.score import Score, Unscored, Why
from tests.unit.analysis.rules.test_grounding import KNOWN, ask, call, run

TERMS = [
    ("Each additional bag will incur a fee of $55.", "$55"),
    ("Would you like me to issue a $55 certificate for the delayed flight?", "$55"),
    ("I can offer a certificate of **$55 times the number of passengers** in your booking.", "$55"),
    ("Do you want travel insurance for $37 per passenger?", "$37"),
    ("You may bring up to 23 kg.", "23"),
    ("A discount of 12.5% goes to members.", "12.5%"),
    ("The current date is 2024-05-15, so your booking is too old.", "2024-05-15"),
]
OF_THE_CASE = [
    ("Your total is $55.", "$55"),
    ("The refund of $829 is on its way.", "$829"),
    ("You are booked on 2024-05-15.", "2024-05-15"),
    ("A seat on LH-9999 is free.", "LH-9999"),
    ("It leaves at 19:21.", "19:21"),
]


def said(answer: str, system: str = "") -> Grounding:
    found = grounding(run("Hi", answer, call("look", {}, KNOWN), system=system))
    assert found is not None
    return found


def texts(found: Grounding) -> tuple[list[str], list[str]]:
    return [each.value.text for each in found.open], [each.claim.value.text for each in found.loose]


@pytest.mark.parametrize(("answer", "value"), TERMS)
def test_terms_cannot_be_told_where_the_instructions_were_not_captured(answer: str, value: str) -> None:
    assert texts(said(answer)) == ([value], [])
    assert texts(said(answer, system="You help.")) == ([], [value])
    assert texts(said(answer, system=f"Know: {value}.")) == ([], [])


@pytest.mark.parametrize(("answer", "value"), OF_THE_CASE)
def test_what_belongs_to_the_case_has_to_stand_somewhere_all_the_same(answer: str, value: str) -> None:
    assert texts(said(answer)) == ([], [value])


def test_terms_alone_are_no_pass_and_beside_others_they_are_told() -> None:
    alone = ask(run("Hi", TERMS[0][0], call("look", {}, KNOWN), system=""))
    assert isinstance(alone, Unscored)
    assert alone.why is Why.INSUFFICIENT_EVIDENCE
    assert "instructions were not captured" in alone.reason
    beside = ask(run("Hi", f"LH-1315 at 13:15. {TERMS[0][0]}", call("look", {}, KNOWN), system=""))
    assert isinstance(beside, Score)
    assert (beside.value, beside.failed) == (1.0, False)
    assert beside.coverage == pytest.approx(2 / 3)
    assert "1 value not checked" in beside.reason


def test_instructions_of_an_earlier_trace_of_the_session_count() -> None:
    first = run("Hi", "Hello.", system="You help.", session_id="s")
    later = replace(run("Well?", TERMS[0][0], call("look", {}, KNOWN), system=""), session_id="s")
    told, untold = before([pack(first)], frozenset()), before([pack(replace(first, spans=()))], frozenset())
    assert (told.instructed, untold.instructed) == (True, False)
    found = grounding(later, told)
    assert found is not None
    assert texts(found) == ([], ["$55"])
    found = grounding(later, untold)
    assert found is not None
    assert texts(found) == (["$55"], [])


def test_a_long_result_leaves_the_words_that_may_be_values_and_what_stands_between_them() -> None:
    """Against the definition, word by word: a word of small letters and marks alone goes, with the blanks behind it."""
    for length in range(6):
        for signs in product("a1 \n-", repeat=length):
            text = "".join(signs)
            words = re.findall(r"\S+\s*|\s+", text)
            assert _PLAIN_WORDS.sub("", text) == "".join(
                each for each in words if each.isspace() or each.rstrip().strip("abcdefghijklmnopqrstuvwxyz-")
            )
