"""The limits in ``budget.toml``."""

from __future__ import annotations

import sys

import pytest

from support.budget import budget, budget_text, complaints, earlier_budget, measured, raised_without_reason


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 counts the parts of an f-string as tokens")
def test_every_number_is_within_its_limit() -> None:
    """``python tests/support/budget.py`` prints the table."""
    assert list(complaints(measured(), budget())) == []


def test_limits_rise_only_with_a_reason() -> None:
    before = earlier_budget()
    if before is None:
        pytest.skip("this clone has no earlier budget.toml with these limits")
    assert list(raised_without_reason(before, budget_text())) == []


def test_a_number_above_its_limit_is_reported() -> None:
    assert list(complaints({"tokens": 1200, "keys": 9}, {"tokens": 1100, "keys": 9})) == [
        "tokens is 1,200, above the limit of 1,100 in budget.toml: remove something."
    ]


def test_a_number_without_a_limit_and_a_limit_without_a_number_are_reported() -> None:
    missing_limit, missing_number = complaints({"tokens": 5}, {"keys": 10})
    assert missing_limit == "tokens is 5 and has no limit: add it to budget.toml."
    assert missing_number == "keys is not measured: remove it from budget.toml."


def test_a_raised_limit_needs_a_new_reason() -> None:
    before = "tokens = 10  # raised: parser\nkeys = 5\n"
    (sentence,) = raised_without_reason(before, "tokens = 11  # raised: parser\nkeys = 5\n")
    assert sentence == "tokens rises from 10 to 11: add '# raised: REASON' to its line."
    assert list(raised_without_reason(before, "tokens = 11  # raised: second parser\nkeys = 4\n")) == []
