"""Rows of lists and their results."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.show.view.rows import SessionRow, TraceRow, by_urgency
from pandaeval_collector.store.listed_pages import Listed, ListedSession

FACTS: dict[str, Any] = {"id": "ab" * 16, "at": 5, "us": 7, "spans": 3, "llm": 2, "tools": 1}
MORE: dict[str, Any] = {
    "agent": "helper",
    "service": "shop",
    "user": "ann",
    "error": "boom",
    "in": "Where?",
    "out": "There.",
    "incomplete": True,
}


def _result(metric: str, score: float | None, success: bool | None) -> dict[str, Any]:
    outcome, why = ("unscored", "timeout") if score is None else ("scored", None)
    given = {"level": "trace", "outcome": outcome, "why": why, "reason": "", "metadata": {}}
    return {**given, "metric": metric, "score": score, "success": success}


def test_results_are_ordered_failed_first_then_lowest_then_unscored() -> None:
    order = [
        _result("failed low", 0.1, False),
        _result("failed high", 0.9, False),
        _result("failed unscored", None, False),
        _result("zero", 0.0, True),
        _result("a same", 0.5, None),
        _result("b same", 0.5, True),
        _result("best", 1.0, True),
        _result("a unscored", None, None),
        _result("b unscored", None, None),
    ]
    for given in (order, order[::-1], sorted(order, key=lambda each: each["metric"])):
        assert by_urgency(given) == order


def test_a_result_without_a_verdict_ranks_after_a_failed_result() -> None:
    assert [each["metric"] for each in by_urgency([_result("a", None, None), _result("b", 1.0, False)])] == ["b", "a"]


@pytest.mark.parametrize(
    ("badness", "failed", "worst"),
    [
        (0.0, True, 0.0),
        (0.25, True, 0.25),
        (2.0, True, None),
        (1.0, True, 1.0),
        (10.0, False, 0.0),
        (10.5, False, 0.5),
        (12.0, False, None),
    ],
)
def test_badness_gives_failed_and_the_worst_signal(badness: float, failed: bool, worst: float) -> None:
    row = TraceRow.of(Listed(1, None, badness, 0, FACTS))
    assert (row.failed, row.worst) == (failed, worst)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (FACTS, {"agent": "", "service": "", "complete": True, **dict.fromkeys(("user", "error", "input", "output"))}),
        (
            FACTS | MORE,
            {
                "agent": "helper",
                "service": "shop",
                "user": "ann",
                "error": "boom",
                "input": "Where?",
                "output": "There.",
                "complete": False,
            },
        ),
    ],
)
def test_a_trace_row_contains_all_facts_of_the_trace(facts: dict[str, Any], said: dict[str, Any]) -> None:
    row = TraceRow.of(Listed(1, "s1", 0.25, 3, facts, environment="prod")).model_dump(exclude={"results"})
    assert row == {
        "environment": "prod",
        "trace_id": "ab" * 16,
        "session_id": "s1",
        "started_at": 5,
        "duration_us": 7,
        "spans": 3,
        "llm_calls": 2,
        "tool_calls": 1,
        "failed": True,
        "failures": 3,
        "worst": 0.25,
        "runs": [],
        "evaluations": [],
        **said,
    }


def test_results_of_a_row_are_ordered_by_urgency() -> None:
    results = {"trace.a": _result("a", 0.5, True), "trace.b": _result("b", 0.9, False)}
    row = TraceRow.of(Listed(1, "s1", 0.25, 3, FACTS, results))
    assert [each["metric"] for each in row.model_dump()["results"]] == ["b", "a"]


@pytest.mark.parametrize("worst", [None, Listed(1, "s1", 0.25, 3, FACTS)])
def test_a_session_row_has_trace_counts_and_its_worst_trace(worst: Listed | None) -> None:
    row = SessionRow.of(
        ListedSession("s1", 7, (0.25, 1), 4, 2, 10, 20, True, worst, {"session.a": _result("a", 1, True)})
    )
    assert (row.session_id, row.traces, row.failed_traces, row.first_at, row.last_at) == ("s1", 4, 2, 10, 20)
    assert row.failed is True
    assert row.worst == (None if worst is None else TraceRow.of(worst))
    assert row.model_dump()["results"] == [_result("a", 1, True)]


def test_an_unknown_environment_is_null() -> None:
    assert TraceRow.of(Listed(1, None, 0.25, 0, FACTS)).environment is None
