"""Lazily compiled patterns."""

from __future__ import annotations

import re

import pytest

from pandaeval_collector.base.lazy_pattern import lazily


def test_it_finds_what_the_pattern_finds() -> None:
    for pattern in (re.compile("a(b)", re.IGNORECASE), lazily("a(b)", re.IGNORECASE)):
        for _ in range(2):
            found = pattern.search("xAB")
            assert found is not None
            assert (found.span(), found[1], pattern.sub("-", "ab"), pattern.pattern) == ((1, 3), "B", "-", "a(b)")


def test_a_wrong_one_is_told_at_its_first_use() -> None:
    wrong = lazily("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_nothing_is_compiled_before() -> None:
    assert "match" not in vars(lazily("a"))
