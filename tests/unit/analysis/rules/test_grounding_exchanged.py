"""Values that an answer gives to each other's owner; each case has a twin in which they stand where they belong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.analysis.rules.test_grounding import call, loose, run

BILL = {"subtotal": 412.5, "tax": 37.13, "shipping_fee": 61.2, "handling_fee": 18.4}
SHOES = [
    {"name": "Trail Runner", "price": 129.9, "stock_since": "2026-03-04"},
    {"name": "Road Racer", "price": 154.5, "stock_since": "2026-04-19"},
]
FLIGHTS: dict[str, Any] = {"flights": [{"number": "HAT097", "from": "DTW"}, {"number": "HAT251", "from": "PHX"}]}


def wrong(answer: str, result: Any, user: str = "And?") -> list[str]:
    return loose(run(user, answer, call("look", {}, result)))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Subtotal: $412.50, tax: $37.13.", []),
        ("Subtotal: $37.13, tax: $412.50.", ["$412.50"]),
        ("The shipping fee is $61.20 and the handling fee is $18.40.", []),
        ("The shipping fee is $18.40 and the handling fee is $61.20.", ["$61.20"]),
        ("Tax: $412.50.", []),  # one half alone is no exchange
        ("You pay $37.13 and then $412.50.", []),
    ],
)
def test_by_the_keys_of_one_object(answer: str, found: list[str]) -> None:
    assert sorted(wrong(answer, BILL)) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("- Trail Runner: $129.90\n- Road Racer: $154.50", []),
        ("- Trail Runner: $154.50\n- Road Racer: $129.90", ["$129.90"]),
        ("- Trail Runner, since 19 April 2026\n- Road Racer, since 4 March 2026", ["4 March 2026"]),
        ("- Trail Runner, since 4 March 2026\n- Road Racer, since 19 April 2026", []),
        ("Trail Runner and Road Racer cost $154.50 and $129.90.", []),  # whose is which, nobody can tell
        ("- Trail Runner: $154.50\n- Another: $129.90", []),
    ],
)
def test_by_the_names_of_two_objects(answer: str, found: list[str]) -> None:
    assert sorted(wrong(answer, SHOES)) == found


def test_parts_of_objects_are_compared_in_one_line() -> None:
    found = [{"name": "Trail Runner", "options": {"length": 31}}, {"name": "Road Racer", "options": {"length": 34}}]
    assert wrong("- Trail Runner: 34 cm, not as short\n- Road Racer: 31 cm", {"items": found}) == []


def test_names_that_stand_in_both_lines_tell_nothing() -> None:
    assert wrong("- DTW to PHX: HAT097\n- PHX to SEA: HAT251", FLIGHTS) == []
    assert wrong("- DTW: HAT251\n- PHX: HAT097", FLIGHTS) == ["HAT097"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("It is €41.75.", ["€41.75"]),
        ("It is $41.75.", []),
        ("It is €99.", ["€99"]),  # made up, whatever the currency
    ],
)
def test_a_currency_that_no_source_names(answer: str, found: list[str]) -> None:
    assert wrong(answer, {"text": "41.75 is due", "limit": "$300"}) == found
    assert wrong(answer.replace("99", "300"), {"text": "41.75 due, €300 or $300"}) == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("The ride takes 47 hours.", ["47 hours"]),
        ("The ride takes 47 minutes.", []),
        ("The ride takes 47 minutes. Refunds arrive within 5 business days at your bank.", []),
        ("The ride takes 47 minutes. Refunds arrive within 5 weeks at your bank.", ["5 weeks"]),
        ("The ride takes 47 minutes. I shall call back in 5 weeks.", []),
    ],
)
def test_units_of_keys_and_of_the_same_subject(answer: str, found: list[str]) -> None:
    known = {"duration_minutes": 47, "note": "Refunds arrive at your bank within 5 business days."}
    assert wrong(answer, known) == found
