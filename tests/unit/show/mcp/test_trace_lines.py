"""A trace as text for coding agents."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.show.view.lines import (
    headline,
    session_headline,
    session_line,
    session_lines,
    step_lines,
    trace_lines,
    verdict_lines,
)


def result(metric: str, score: float, **changed: Any) -> dict[str, Any]:
    success = score >= 0.5
    said = {"level": "trace", "metric": metric, "score": score, "success": success, "outcome": "scored", "why": None}
    return {**said, "label": None, "reason": f"{metric} it is", "metadata": {}, **changed}


def trace(id_: str, *results: dict[str, Any], calls: tuple[str, ...] = (), asked: str = "When?") -> dict[str, Any]:
    spans = [
        {"id": call, "kind": "tool", "name": call, "tool": call, "us": 1, "depth": 1, "args": 0, "result": 1}
        for call in calls
    ]
    about = {"trace_id": id_, "agent": "desk", "started_at": 0, "error": None, "input": asked, "session_id": None}
    return {**about, "results": [*results], "detail": {"spans": spans, "texts": ["{}", "[]"]}}


def test_verdict_lines_show_the_judge_or_rule_findings_and_human_labels() -> None:
    [alone] = verdict_lines(trace("a" * 32, result("loop", 0.0)), [], [])
    assert alone.startswith("not judged; by rules 1 finding: trace.loop 0.00 (fail)")
    things = [{"thing": "Book a table.", "became": "missing", "shown_by": None}]
    judged = result("correctness", 0.0, level="session", metadata={"things": things, "first_wrong_step": "call 2"})
    label = {"annotator": "kim", "metric": "session.correctness", "passed": False, "score": None, "comment": "no table"}
    lines = [*verdict_lines(trace("a" * 32), [judged], [label])]
    assert lines[0].startswith("session.correctness 0.00 (fail)")
    assert lines[1:] == [
        "- missing: Book a table. (evidence: -)",
        "- first wrong step: call 2",
        'a person ("kim") labels session.correctness: fail no table',
    ]


def test_a_finding_shows_its_reason_at_the_first_step_and_only_its_name_later() -> None:
    loop = result("tool_loop", 0.2, label="loop", span_id="root", span_ids=["a2", "a3"])
    step = {"span_id": "a2", "kind": "tool", "tool": "seek", "agent": None, "reasons": ["found by tool_loop"]}
    blamed = {"threshold": None, "step": step, "candidates": [step]}
    blame = result("blame", 1.0, success=None, label="tool", span_id="root", metadata=blamed)
    run = trace("b" * 32, loop, blame, calls=("root", "a1", "a2", "a3"))
    run["detail"]["left_out"] = 0
    lines = [line.strip() for line in step_lines(run) if ". tool" not in line]
    assert lines == [
        "blamed by trace.tool_loop 0.20 (fail, loop): tool_loop it is",
        "first wrong step: found by tool_loop",
        "blamed by trace.tool_loop",
    ]
    facts = {"service": "s", "duration_us": 1, "llm_calls": 0, "tool_calls": 3, "spans": 4, "complete": True}
    told = [*trace_lines({**run, **facts, "output": None})]
    assert "- step 3 (tool seek): first wrong step: found by tool_loop" in told
    assert not any(line.startswith("- trace.blame") for line in told)


def test_the_headline_of_a_session_names_the_cause() -> None:
    worst = {**trace("c" * 32, result("response", 0.0)), "failed": True}
    reliability = result("agent_reliability", 0.0, level="session", metadata={"basis": "inline"})
    row = {"session_id": "s", "results": [reliability], "worst": worst, "failed": True}
    assert session_headline(row, 80).startswith("trace.response 0.00")
    assert session_headline({**row, "worst": {**worst, "failed": False}}, 80).startswith("session.agent_reliability")
    told = {"label": "missing_thing", "metadata": {"first_wrong_step": "turn 2"}}
    judged = [result("goal_completion", 0.0, level="session"), result("correctness", 0.1, level="session", **told)]
    assert session_headline({**row, "results": judged}, 80) == "missing thing at turn 2: correctness it is"
    assert [line.split()[1] for line in session_lines({"results": [reliability, *judged]})] == [
        "session.correctness",
        "session.goal_completion",
    ]
    assert [*session_lines(row)] == ["- session.agent_reliability 0.00 (fail): agent_reliability it is"]


UNCLEAR = result("correctness", 0.5, success=None, label="unclear")
GONE = {**result("correctness", 0.0, outcome="unscored", success=None, why="judge_failed"), "score": None}


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (UNCLEAR, "correctness 0.50 (unclear): correctness it is"),
        ({**UNCLEAR, "label": "disputed"}, "correctness 0.50 (disputed): correctness it is"),
        ({**UNCLEAR, "label": "suspect"}, "correctness 0.50 (suspect): correctness it is"),
        (GONE, "correctness unscored (judge_failed): correctness it is"),
        ({**GONE, "why": "over_budget"}, "correctness unscored (over_budget): correctness it is"),
    ],
)
def test_an_undecided_verdict_comes_first_and_hides_only_passes(verdict: dict[str, Any], text: str) -> None:
    fine, bad = result("response", 1.0), result("tool_loop", 0.1)
    row = trace("e" * 32, fine, verdict)
    assert headline(row, 80) == headline(row, 80, "correctness") == f"trace.{text}"
    assert headline(row, 80, "response") == f"trace.{text}; trace.response 1.00 (pass): response it is"
    failed = {**trace("e" * 32, bad, fine, verdict), "error": "boom", "failed": True}
    assert headline(failed, 80) == f"trace.{text}; run failed: boom; trace.tool_loop 0.10 (fail): tool_loop it is"
    inline = result("agent_reliability", 1.0, level="session", label="no_problem_found", metadata={"basis": "inline"})
    own = {"session_id": "s", "results": [inline, {**verdict, "level": "session"}], "traces": 1, "failed_traces": 0}
    session = {**own, "worst": trace("e" * 32, fine), "failed": False}
    assert session_headline(session, 80) == f"session.{text}"
    assert f"session.{text}" in session_line(session)
    found = session_headline({**session, "worst": trace("e" * 32, bad), "failed": True}, 80)
    assert found == f"session.{text}; trace.tool_loop 0.10 (fail): tool_loop it is"


@pytest.mark.parametrize("verdict", [{**GONE, "why": "no_content"}, {**UNCLEAR, "label": "dismissed"}])
def test_a_missing_verdict_without_a_failure_does_not_hide_the_findings_of_rules(verdict: dict[str, Any]) -> None:
    assert headline(trace("f" * 32, result("response", 1.0), verdict), 80).startswith("trace.response 1.00 (pass)")


def test_verdict_lines_show_a_failed_judge_once() -> None:
    first, second = verdict_lines(trace("f" * 32, result("loop", 0.0), GONE), [], [])
    assert first == "not judged; by rules 1 finding: trace.loop 0.00 (fail): loop it is"
    assert second == "trace.correctness unscored (judge_failed): correctness it is"


def test_the_headline_of_an_unscored_trace_gives_the_reason() -> None:
    unscored = {**result("response", 0.0, outcome="unscored", success=None, why="no_content"), "score": None}
    assert headline(trace("d" * 32, unscored, unscored), 80) == "not scored: no_content"
    assert headline(trace("d" * 32), 80) == "not scored"
