"""Run tables: bounded and safe."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.cli._output import console
from pandaeval_collector.show.view.results import ResultView
from pandaeval_lab.cli._summary import SessionSummaryRow, Summary
from pandaeval_lab.cli._tables import print_summary


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


def test_traces_are_counted_and_those_without_a_session_have_rows() -> None:
    summary = Summary()
    for number in range(4000):
        summary.add(result(number, (number * 7919 % 4000) / 4000, session_id=None))
    rows = summary.sessions_worst_first()
    assert [row.rank[1] for row in rows[:3]] == [0.0, 1 / 4000, 2 / 4000]
    assert len(summary.trace_ids) == len(rows) == sum(row.traces for row in rows) == 4000
    assert summary.headline == "not judged: 0 of 4,000 traces have findings"


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


def _stored(number: int, error: str | None) -> str:
    """Return a run of two contentless spans as a line, ended in ``error``."""
    trace_id = f"{number:032x}"
    operations = [("invoke_agent", "agent", "", "desk"), ("execute_tool", "tool", "agent", "search")]
    spans = []
    for place, (operation, id_, parent, name) in enumerate(operations):
        kind = "agent" if operation == "invoke_agent" else "tool"
        attributes = {
            "gen_ai.operation.name": operation,
            f"gen_ai.{kind}.name": name,
            "gen_ai.conversation.id": f"s{number}",
        }
        spans.append(
            {
                "traceId": trace_id,
                "spanId": id_.encode().ljust(8).hex(),
                "parentSpanId": parent.encode().ljust(8).hex() if parent else "",
                "name": f"{operation} {name}",
                "startTimeUnixNano": str(10**18 + place),
                "endTimeUnixNano": str(10**18 + 100 - place),
                "status": {"code": 2, "message": error} if error and not parent else {},
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
            }
        )
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def test_a_run_that_broke_stands_above_the_others_and_says_so(tmp_path: Path) -> None:
    recording = tmp_path / "traces.jsonl"
    recording.write_text("\n".join((_stored(1, None), _stored(2, "connection lost"), _stored(3, None))))
    done = CliRunner().invoke(app, ["evaluate", str(recording)])
    assert done.exit_code == 0, done.output
    sessions = done.stdout.partition("Metrics")[0].splitlines()
    assert sessions[3].split()[:4] == ["s2", "desk", "1", "0.00"]
    assert "run failed: connection lost" in sessions[3]
    assert not any("run failed" in line for line in sessions[4:])


def test_at_80_columns_ids_are_whole_and_the_cause_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    summary = Summary()
    for number, metric in enumerate(("tool_loop", "response", "coherence")):
        failed = {"success": False, "score": 0.1} if metric != "coherence" else {}
        summary.add(result(number, 0.9, metric=metric, session_id="a-session-with-a-name", agent="a" * 40) | failed)
    out = io.StringIO()
    print_summary(summary, console(file=out))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    at = next(at for at, line in enumerate(lines) if line.startswith("a-session-with-a-name"))
    assert lines[at + 1].strip() == "trace.tool_loop: because"


def test_where_no_run_broke_nothing_is_said_of_it() -> None:
    summary = Summary()
    summary.add(result(0, 0.0, success=False))
    out = io.StringIO()
    print_summary(summary, console(file=out))
    assert "coherence: because" in out.getvalue()
    assert "run failed" not in out.getvalue()


def judged(outcome: str, why: str | None, kind: str = "llm", reason: str = "nobody there") -> dict[str, Any]:
    score = 0.5 if outcome == "scored" else None
    held = result(0, score or 0.0, success=None)
    return {**held, "outcome": outcome, "why": why, "score": score, "reason": reason, "evaluator": {"kind": kind}}


SILENT = judged("unscored", "judge_failed")


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ([SILENT, judged("unscored", "timeout")], "nobody there. 0 of 2 questions were answered."),
        ([SILENT, judged("scored", None)], ""),
        ([SILENT, judged("unscored", "invalid_verdict")], ""),
        ([SILENT, judged("scored", None, "code")], "nobody there. 0 of 1 questions were answered."),
        ([judged("unscored", "no_content")], ""),
        ([], ""),
    ],
)
def test_a_judge_that_never_answered_is_told_of(results: list[dict[str, Any]], told: str) -> None:
    summary = Summary()
    for each in results:
        summary.add(each)
    assert summary.silence == told


def cell(metric: str, score: float, success: bool | None, label: str = "", inline: bool = False) -> ResultView:
    return ResultView(metric, "scored", score, score, success, label, None, "because", "desk", inline)


def test_no_worst_number_stands_beside_that_there_is_no_problem() -> None:
    row = SessionSummaryRow("s", 1)
    row.note(cell("coherence", 0.0, None))
    assert row.shown is not None, "it is what is told of"
    row.reliability = cell("agent_reliability", 0.95, True, "no_problem_found", inline=True)
    row.note(row.reliability, of_session=True)
    assert row.found.startswith("no problem found")
    assert row.shown is None
    row.note(cell("response", 0.0, False))
    assert (row.shown, row.found) == (row.worst, "response: because")
