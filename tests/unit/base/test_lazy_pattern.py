"""Lazily compiled patterns."""

from __future__ import annotations

import re

import pytest

from pandaeval_collector.base.lazy_pattern import lazily


def test_a_lazy_pattern_matches_like_a_compiled_pattern() -> None:
    for pattern in (re.compile("a(b)", re.IGNORECASE), lazily("a(b)", re.IGNORECASE)):
        for _ in range(2):
            found = pattern.search("xAB")
            assert found is not None
            assert (found.span(), found[1], pattern.sub("-", "ab"), pattern.pattern) == ((1, 3), "B", "-", "a(b)")


def test_an_invalid_pattern_raises_at_first_use() -> None:
    wrong = lazily("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_a_lazy_pattern_is_not_compiled_before_use() -> None:
    assert "match" not in vars(lazily("a"))
