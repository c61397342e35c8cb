"""What the tables of a run show stays small, and nothing in a trace can steer a terminal."""

from __future__ import annotations

import io
from typing import Any

from pandaeval_collector.cli._output import console
from pandaeval_collector.cli._summary import KEEP, Summary
from pandaeval_collector.cli._tables import print_summary


def result(trace: int, score: float | None, **facts: Any) -> dict[str, Any]:
    return {
        "level": "trace",
        "metric": "coherence",
        "outcome": "scored" if score is not None else "unscored",
        "score": score,
        "success": None,
        "why": None if score is not None else "no_content",
        "reason": "because",
        "agent": "desk",
        "metadata": {},
        "trace_id": f"{trace:032x}",
        "session_id": f"s{trace % 3}",
        **facts,
    }


def test_the_worst_are_kept_and_all_are_counted() -> None:
    summary = Summary()
    for number in range(10 * KEEP):
        summary.add(result(number, (number * 7919 % 4000) / 4000))
    rows = summary.traces_worst_first()
    assert len(rows) <= 2 * KEEP
    assert [row.badness for row in rows[:3]] == [0.0, 1 / 4000, 2 / 4000]
    assert summary.traces == 10 * KEEP
    assert sum(row.traces for row in summary.sessions_worst_first()) == 10 * KEEP


def test_sessions_are_ranked_by_their_worst_signal_and_unscored_ones_come_last() -> None:
    summary = Summary()
    summary.add(result(0, 0.9))
    summary.add(result(1, 0.8, metadata={"calibrated": 0.1}))
    summary.add(result(2, None))
    assert [row.session_id for row in summary.sessions_worst_first()] == ["s1", "s0", "s2"]


def test_control_characters_are_written_out() -> None:
    summary = Summary()
    summary.add(result(0, 0.5, agent="\x1b[31mred\u202e", session_id="[bold]x[/bold]"))
    out = io.StringIO()
    print_summary(summary, console(file=out))
    assert "\x1b" not in out.getvalue()
    assert "\u202e" not in out.getvalue()
    assert "\\x1b[31mred" in out.getvalue()
    assert "[bold]x[/bold]" in out.getvalue()
