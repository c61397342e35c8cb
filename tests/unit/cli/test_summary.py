"""Run tables: bounded and safe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.cli import app
from pandaeval_lab.cli._summary import Summary
from pandaeval_otel.model import Trace
from support.judged import trace
from support.reports import result as made, tables


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


def _run(number: int, session: str | None, agent: str = "desk") -> Trace:
    return replace(trace(), trace_id=f"{number:032x}", session_id=session, agent=agent)


def test_traces_without_a_session_have_rows_and_rows_over_the_limit_are_counted() -> None:
    runs = [_run(number, None) for number in range(50)]
    told = tables(runs, [made(run, "coherence", number / 100 + 0.5) for number, run in enumerate(runs)])
    rows = [line.split() for line in told.splitlines() if line.startswith("trace ")]
    assert len(rows) == 40
    assert [row[4] for row in rows[:3]] == ["0.50", "0.51", "0.52"]
    assert "not judged: 0 of 50 runs have findings" in told
    assert "Sessions and single runs" in told
    assert "traces" not in told, "the output counts runs, not traces"
    assert "… and 10 more" in told


def test_sessions_are_sorted_by_worst_score_with_unscored_sessions_last() -> None:
    runs = [_run(number, f"s{number}") for number in range(3)]
    scores: list[Any] = [0.9, Score(0.8, "because", {"calibrated": 0.6}), Unscored(Why.NO_CONTENT, "nothing")]
    told = tables(runs, [made(run, "coherence", score) for run, score in zip(runs, scores, strict=True)])
    assert [line.split()[0] for line in told.splitlines() if line.startswith("s") and line[1].isdigit()] == [
        *("s1", "s0", "s2")
    ]


def test_control_characters_are_escaped() -> None:
    run = _run(0, "[bold]x[/bold]", "\x1b[31mred\u202e")
    told = tables([run], [made(run, "coherence", 0.5)])
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "\\x1b[31mred" in told
    assert "[bold]x[/bold]" in told


def _stored(number: int, error: str | None) -> str:
    """Return a run of two spans without content as a JSON line. ``error``: its error."""
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


def test_a_failed_run_is_listed_first_with_its_error(tmp_path: Path) -> None:
    recording = tmp_path / "traces.jsonl"
    recording.write_text("\n".join((_stored(1, None), _stored(2, "connection lost"), _stored(3, None))))
    done = CliRunner().invoke(app, ["evaluate", str(recording)])
    assert done.exit_code == 0, done.output
    sessions = done.stdout.partition("Metrics")[0].splitlines()
    assert sessions[3].split()[:4] == ["s2", "desk", "1", "0.00"]
    assert "run failed: connection lost" in sessions[3]
    assert not any("run failed" in line for line in sessions[4:])


def test_at_80_columns_ids_are_not_cut_and_the_cause_has_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = _run(0, "a-session-with-a-name", "a" * 40)
    lines = tables([run], [made(run, "tool_loop", 0.1), made(run, "coherence", 0.9)]).splitlines()
    assert max(map(len, lines)) <= 80
    at = next(at for at, line in enumerate(lines) if line.startswith("a-session-with-a-name"))
    assert lines[at + 1].strip() == "trace.tool_loop 0.10 (fail): as composed"


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
def test_a_judge_that_never_answered_is_reported(results: list[dict[str, Any]], told: str) -> None:
    summary = Summary()
    for each in results:
        summary.add(each)
    assert summary.silence == told
