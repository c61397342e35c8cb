"""The search finds every kind of slow pattern."""

from __future__ import annotations

import pytest

from support.pumping import Pattern, slow_texts


@pytest.mark.parametrize(
    ("text", "method"),
    [
        pytest.param(r"[^()\n]*\(?[^()\n]*\)?;?$", "match", marks=pytest.mark.slow),  # adjacent repetitions
        pytest.param(r"\s*([/]?)\s*done", "match", marks=pytest.mark.slow),
        pytest.param(r"(?:a+)+$", "match", marks=pytest.mark.slow),  # nested repetitions
        (r"<code>(.{1,20000}?)</code>", "search"),  # many possible starts
        pytest.param(r"(?:\[tool: [^\]]*\])+$", "search", marks=pytest.mark.slow),
        (r"\b[\w-]*\d[\w-]*", "search"),  # a search that can start inside a word
    ],
)
def test_a_slow_pattern_is_found(text: str, method: str) -> None:
    slow = next(slow_texts(Pattern("here", text, 0, method)), None)
    assert slow is not None


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (r"[^()\n]*+(?:\([^()\n]*+)?+\)?;?$", "match"),
        (r"(?:a)++$", "match"),
        (r"(?:\[tool: [^\]]*+(?:\]|\Z))++", "search"),
        (r"(?<!\d)(\d++(?:\.\d++)?+)([DHMS])", "search"),
        (r"[a-z]+\d", "fullmatch"),
        (r"\w*", "search"),
        (r"(?:one|two|three) [45]\d\d", "search"),
    ],
)
def test_a_linear_pattern_passes(text: str, method: str) -> None:
    assert list(slow_texts(Pattern("here", text, 0, method))) == []
