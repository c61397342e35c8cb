"""What `pandaeval top` shows of names and texts of others is obeyed by no terminal, and keeps to its line."""

from __future__ import annotations

import io
import re
from typing import Any

from pandaeval_collector.cli._output import PlainConsole
from pandaeval_collector.cli.top import view

HOSTILE = "ZQX\x1b]0;title\x07\x1b[2J\x9b31m\u202egpj\u200b\r\n[red]AFTER[/red]"

SCORED: dict[str, Any] = {
    "level": "trace",
    "outcome": "scored",
    "score": 0.2,
    "success": False,
    "label": "fail",
    "why": None,
    "metadata": {},
}


def _shown(judge: str | None = None, **jobs: int) -> str:
    result = SCORED | {"metric": HOSTILE, "reason": HOSTILE * 20}
    worst: dict[str, Any] = {"trace_id": "ab" * 16, "agent": HOSTILE, "worst": 0.2, "error": None, "results": [result]}
    sessions = [
        {"session_id": id_, "traces": 2, "failed_traces": 1, "failed": True, "worst": each, "results": []}
        for id_, each in ((HOSTILE, worst), (None, worst | {"results": [], "error": HOSTILE}), ("s", None))
    ]
    rate = {"metric": HOSTILE, "level": "trace", "agent": HOSTILE, "service": HOSTILE, "scored": 4, "assumed": 0}
    whole = {
        "rates": [rate | {"passed": 3, "failed": 1, "unscored": {"no_content": 2}}] * 25,
        "judge": judge,
        "jobs": jobs,
        "spent_usd": 0.25,
        "daily_usd": 5.0,
    }
    file = io.StringIO()
    out = PlainConsole(file=file, force_terminal=True, width=400, markup=False, emoji=False, highlight=False)
    for part in view(whole, sessions, out):
        out.print(part)
    return file.getvalue()


def test_no_text_of_others_reaches_the_terminal() -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", _shown(judge=HOSTILE))
    assert "ZQX" in shown
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", shown) == []
    assert "[red]AFTER[/red]" in shown


def test_what_an_open_session_scored_is_said_to_be_so_far() -> None:
    result = SCORED | {"level": "session", "metric": "agent_reliability", "reason": "one trace crashed"}
    shared = {"session_id": "s", "traces": 1, "failed_traces": 0, "failed": True, "worst": None}
    whole = {"rates": [], "judge": None, "jobs": {}, "spent_usd": 0.0, "daily_usd": None}
    for final, said in (
        (False, "session.agent_reliability 0.20 (fail, so far): one trace crashed"),
        (True, "session.agent_reliability 0.20 (fail): one trace crashed"),
    ):
        file = io.StringIO()
        out = PlainConsole(file=file, width=200)
        for part in view(whole, [shared | {"results": [result | {"final": final}]}], out):
            out.print(part)
        assert said in file.getvalue()


def test_judge_and_rates_are_told() -> None:
    assert "no judge is configured" in _shown()
    shown = _shown("openai/gpt-4o-mini", waiting=3, dead=1)
    assert "judge openai/gpt-4o-mini: jobs 1 dead, 3 waiting; spent $0.2500 of $5.00 today" in shown
    assert "20 of 25" in shown
    assert "0.750" in shown


def test_it_fits_a_terminal_of_80_by_24_and_causes_come_first() -> None:
    reason = "book_ferry failed: the card was declined; nothing made up for it"
    result = SCORED | {"metric": "response", "reason": reason}
    worst = {"trace_id": "ab" * 16, "agent": "desk", "worst": 0.0, "error": None, "results": [result]}
    shared = {"traces": 3, "failed_traces": 1, "failed": True, "worst": worst, "results": []}
    sessions = [shared | {"session_id": f"a-long-name-of-a-session-{number:06}"} for number in range(20)]
    rate = {"level": "trace", "agent": "desk", "service": "shop", "scored": 4, "assumed": 0, "passed": 3, "failed": 1}
    rates = [rate | {"metric": f"metric_{number}", "unscored": {}} for number in range(20)]
    whole = {"rates": rates, "judge": None, "jobs": {}, "spent_usd": 0.0, "daily_usd": None}
    file = io.StringIO()
    out = PlainConsole(file=file, force_terminal=True, width=80, height=24, color_system=None)
    for part in view(whole, sessions, out):
        out.print(part)
    lines = file.getvalue().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert sum("response 0.20 (fail): book_ferry failed" in line for line in lines) >= 8
    assert sum("metric_" in line for line in lines) >= 4
