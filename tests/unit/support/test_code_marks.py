"""Generated pages mark names and values as code."""

from __future__ import annotations

import pytest

from support.code_marks import code_marked


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("If null, judge.model applies.", "If `null`, `judge.model` applies."),
        ("Set trace.coherence: 0.5, in max_bytes.", "Set `trace.coherence: 0.5`, in `max_bytes`."),
        ("Use HOST:PORT, or openai/gpt-4o-mini.", "Use `HOST:PORT`, or `openai/gpt-4o-mini`."),
        ("The page `/` of server.http.", "The page `/` of `server.http`."),
        ("It scores 2.5 traces: at once.", "It scores 2.5 traces: at once."),
    ],
)
def test_names_and_values_are_marked_as_code(text: str, marked: str) -> None:
    assert code_marked(text) == marked


def test_ambiguous_values_are_marked_only_as_subjects() -> None:
    text = "With count, the collector can only count. count is fast."
    assert code_marked(text, ["count"]) == "With `count`, the collector can only count. `count` is fast."
