"""A trace as text for coding agents."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.show.view.lines import verdict_lines


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


def test_a_verdict_is_that_of_a_judge_else_what_rules_found_and_what_people_say() -> None:
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
