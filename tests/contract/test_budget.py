"""No room is larger than ``budget.toml`` lets it be."""

from __future__ import annotations

from support.budget import budget, complaints, measured


def test_each_room_keeps_to_its_budget() -> None:
    """``python tests/support/budget.py`` prints the table."""
    assert list(complaints(measured(), budget())) == []


def test_a_room_above_its_budget_is_named_with_its_lines_and_what_to_do() -> None:
    there, allowed = (
        {"house/attic": 1200, "house/cellar": 90, "house/shed": 5},
        {"house/attic": 1100, "house/cellar": 90},
    )
    above, without = complaints(there, allowed)
    assert above == (
        "house/attic has 1,200 lines, and its budget is 1,100: make it smaller, or raise the number in budget.toml and "
        "write the reason beside it."
    )
    assert without.startswith("house/shed has 5 lines and no budget")


def test_a_budget_of_a_room_that_is_gone_is_named() -> None:
    assert [*complaints({}, {"house/attic": 10})] == ["house/attic is not there: take its budget out of budget.toml."]
