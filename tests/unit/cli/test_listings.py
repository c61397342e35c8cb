"""Lists print untrusted text safely on one line."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pandaeval_collector.cli import _output as output
from pandaeval_collector.cli.lists import SESSIONS

HOSTILE = "ZQX\x1b]0;title\x07\x1b[2J\x9b31m\u202egpj\u200b\r\n[red]AFTER[/red]"
RESULT: dict[str, Any] = {
    "level": "session",
    "metric": "agent_reliability",
    "reason": "one trace crashed",
    "outcome": "scored",
    "score": 0.2,
    "success": False,
    "label": "fail",
    "why": None,
    "metadata": {},
}
SESSION = {"session_id": "s", "traces": 2, "failed_traces": 1, "failed": True, "worst": None, "last_at": 0}


def _shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *sessions: dict[str, Any]) -> str:
    def terminal(**_: Any) -> output.PlainConsole:
        return output.PlainConsole(force_terminal=True, width=4000, markup=False, emoji=False, highlight=False)

    monkeypatch.setattr(output, "console", terminal)
    output.show(sessions, SESSIONS)
    return capsys.readouterr().out


def test_control_characters_of_untrusted_text_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = RESULT | {"metric": HOSTILE, "reason": HOSTILE * 20}
    worst = {"trace_id": "ab" * 16, "agent": HOSTILE, "worst": 0.2, "error": None, "results": [result]}
    named = SESSION | {"session_id": HOSTILE, "worst": worst, "results": []}
    alone = named | {"session_id": None, "worst": worst | {"results": [], "error": HOSTILE}}
    shown = _shown(monkeypatch, capsys, named, alone, SESSION | {"results": []})
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "ZQX" in shown
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", shown) == []
    assert "[red]AFTER[/red]" in shown


@pytest.mark.parametrize(("final", "word"), [(False, "fail, so far"), (True, "fail")])
def test_the_score_of_an_open_session_is_marked_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], final: bool, word: str
) -> None:
    shown = _shown(monkeypatch, capsys, SESSION | {"results": [RESULT | {"final": final}]})
    assert f"session.agent_reliability 0.20 ({word}): one trace crashed" in shown
