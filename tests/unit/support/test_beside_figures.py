"""Figures of ordinary traffic during hostile traffic."""

from __future__ import annotations

from typing import Any

import pytest

from support.hostile.beside_figures import answers, decisions, outcomes, percentile, problems
from support.hostile.random_traces import request_of
from support.hostile.slow_inputs import SLOW_INPUTS


def test_a_percentile_is_a_measured_value() -> None:
    assert percentile([float(value) for value in range(200, 0, -1)], 0.99) == 199.0
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([], 0.5) is None


def test_answer_times_are_summarised_by_percentiles() -> None:
    assert answers([0.1] * 98 + [2.0] * 2) == {"requests": 100, "p50_s": 0.1, "p99_s": 2.0}
    assert answers([]) == {"requests": 0, "p50_s": None, "p99_s": None}


def test_the_slowest_decision_is_compared_with_the_median_without_hostile_traffic() -> None:
    alone = {b"a": 10.0, b"b": 11.0, b"c": 12.0}
    beside = {b"d": 20.0, b"e": 21.0}
    decided = {b"a": 10.5, b"b": 11.25, b"c": 13.5, b"d": 20.75, b"e": 24.75}
    assert decisions(alone, beside, decided) == {
        "traces": 5, "decided": 5, "alone_s": 0.5, "p50_s": 3.75, "later_s": 3.25
    }  # fmt: skip


def test_undecided_traces_are_counted_and_have_no_delay() -> None:
    found = decisions({b"a": 1.0}, {b"b": 2.0, b"c": 3.0}, {b"a": 2.0, b"b": 2.5, b"other": 9.0})
    assert (found["traces"], found["decided"], found["later_s"]) == (3, 2, 0.0)
    assert decisions({b"a": 1.0}, {b"b": 2.0}, {})["later_s"] is None


def _result(trace_id: str, score: float | None, reason: str, level: str = "trace", **more: Any) -> dict[str, Any]:
    outcome = "unscored" if score is None else "scored"
    return {"trace_id": trace_id, "level": level, "outcome": outcome, "score": score, "reason": reason, **more}


def test_hostile_traces_without_a_score_and_a_reason_are_counted() -> None:
    results = [
        _result("a", 0.5, ""),
        _result("b", None, "took too long", why="timeout"),
        _result("c", None, "", why="timeout"),
        _result("d", 1.0, "of its session", level="session"),
        _result("other", 1.0, "fine"),
    ]
    found = outcomes(["a", "b", "c", "d"], results)
    assert found == {"traces": 4, "without": 2, "outcomes": {"scored": 1, "unscored timeout": 1}}


FINE: dict[str, Any] = {
    "beside": {"p99_s": 1.0},
    "decisions": {"traces": 9, "decided": 9, "later_s": 10.0},
    "hostile": {"traces": 10, "without": 0},
    "restarts": 0,
    "refused": [],
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, []),
        ({"beside": {"p99_s": 1.001}}, ["the 99th percentile of ordinary answers was 1.001 s"]),
        ({"beside": {"p99_s": None}}, ["the 99th percentile of ordinary answers was None s"]),
        ({"decisions": {**FINE["decisions"], "later_s": 10.1}}, ["a decision came 10.1 s later than alone"]),
        ({"decisions": {**FINE["decisions"], "decided": 7}}, ["2 ordinary traces are not decided"]),
        ({"hostile": {"traces": 10, "without": 3}}, ["3 of 10 hostile traces have no result"]),
        ({"restarts": 1}, ["the front ended 1 times"]),
        ({"refused": ["HTTP 400"]}, ["an ordinary request was refused: HTTP 400"]),
    ],
)
def test_each_exceeded_limit_is_reported(change: dict[str, Any], problem: list[str]) -> None:
    assert problems(FINE | change) == problem


@pytest.mark.parametrize("name", SLOW_INPUTS)
def test_each_slow_input_is_one_valid_trace_below_the_size_limit(name: str) -> None:
    request = request_of(SLOW_INPUTS[name].spans(), b"hostile trace id")
    spans = request.resource_spans[0].scope_spans[0].spans
    assert len({span.span_id for span in spans}) == len(spans)
    assert [span.name for span in spans if not span.parent_span_id] == ["invoke_agent a"]
    assert 30_000 < request.ByteSize() < 16 << 20
