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
    ("Do you want travel insurance for $37 (per passenger)?", "$37"),
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
    ("I have issued a $55 certificate to you.", "$55"),
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


def test_what_follows_from_open_terms_alone_is_open() -> None:
    assert texts(said("The upgrade is $955 per passenger, or $1,910 for 2.")) == (["$955", "$1,910"], [])
    assert texts(said("The upgrade is $955 per passenger, or $1,917 for 2.")) == (["$955"], ["$1,917"])


FLIGHT = {"flight": "HAT-072", "departs": "09:00", "price": {"economy": 131, "business": 188}, "seats": {"economy": 4}}


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("The difference is $57.", []),
        ("For all 4 seats: $524.", []),
        ("It is $127.", ["$127"]),
        ("It is $135.", ["$135"]),
    ],
    ids=["price less price", "price by count", "price less seats", "price and seats"],
)
def test_amounts_are_added_to_amounts_and_multiplied_by_counts(answer: str, made_up: list[str]) -> None:
    found = grounding(run("Well?", answer, call("search", {}, FLIGHT)))
    assert found is not None
    assert texts(found)[1] == made_up


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("Flight HAT-072 - Departure: 09:00 - Price: $131", []),
        ("Flight HAT-079 - Departure: 09:20 - Price: $150", ["HAT-079", "09:20", "$150"]),
        ("Oslo was founded around 1040 and won the cup on 1987-05-03.", []),
        ("This makes a price difference of $0.35.", []),
    ],
)
def test_values_that_were_looked_up_earlier_are_of_the_case(answer: str, made_up: list[str]) -> None:
    first = run("Flights?", "There is one.", call("search", {}, FLIGHT), session_id="s")
    later = replace(run("Which one?", answer), session_id="s")
    found = grounding(later, before([pack(first)], frozenset()))
    assert sorted([] if found is None else texts(found)[1]) == sorted(made_up)
    assert grounding(later) is None


@pytest.mark.parametrize(
    "answer",
    ["Would you like me to issue a $55 certificate?", "The amount would be $55. Shall I go on with issuing it?"],
)
def test_what_is_offered_to_make_up_for_something_is_open_beside_other_certificates(answer: str) -> None:
    profile = call("get_user", {}, {"methods": "a certificate of $500 to pay with, issued for a flight"})
    found = grounding(run("It was late.", answer, profile, system=""))
    assert found is not None
    assert texts(found) == (["$55"], [])
