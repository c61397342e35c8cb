"""Shown numbers agree with verdicts."""

from __future__ import annotations

import pytest
from rich.console import Console

from pandaeval_collector.cli._output import reason_room
from pandaeval_collector.show.view.results import ResultView


@pytest.mark.parametrize(
    ("score", "success", "label", "text"),
    [
        (0.8, False, "made_up_value", "trace.grounding (fail, made_up_value): why"),
        (0.2, False, "made_up_value", "trace.grounding 0.20 (fail, made_up_value): why"),
        (0.0, True, "pass", "trace.grounding (pass): why"),
        (0.4, True, "pass", "trace.grounding 0.40 (pass): why"),
        (0.9, True, "pass", "trace.grounding 0.90 (pass): why"),
        (0.1, None, "suspect", "trace.grounding 0.10 (suspect): why"),
    ],
)
def test_a_score_that_contradicts_its_verdict_is_left_out(
    score: float, success: bool | None, label: str, text: str
) -> None:
    assert ResultView("trace.grounding", "scored", score, score, success, label, reason="why").text(100) == text


@pytest.mark.parametrize(("width", "room"), [(80, 228), (200, 300), (100_000, 300)])
def test_a_reason_takes_at_most_three_terminal_lines(width: int, room: int) -> None:
    assert reason_room(Console(width=width)) == room
