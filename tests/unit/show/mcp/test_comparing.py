"""Two groups of results side by side: the newest result of each unit counts, and differences have intervals."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.show.view.rates import GroupCounts, compared


def result(unit: str, success: bool | None, version: str = "1") -> dict[str, Any]:
    return {
        "level": "trace",
        "metric": "m",
        "trace_id": unit,
        "session_id": "s",
        "success": success,
        "outcome": "unscored" if success is None else "scored",
        "why": "no_content" if success is None else None,
        "evaluator": {"version": version},
    }


def tally(*results: dict[str, Any], version: str | None = None) -> GroupCounts:
    made = GroupCounts()
    made.add(results, version, set())
    return made


def test_of_each_unit_the_newest_counts() -> None:
    made = tally(result("a", True), result("a", False), result("b", None), result("c", False)).metrics["trace.m"]
    assert (made.passed, made.failed, made.missing) == (1, 1, 1)


def test_versions_of_a_metric_are_told_apart() -> None:
    results = (result("a", True, "2"), result("a", False, "1"))
    assert tally(*results, version="1").metrics["trace.m"].failed == 1
    assert tally(*results, version="2").metrics["trace.m"].passed == 1


def test_the_difference_has_newcombes_interval() -> None:
    """56 of 70 against 48 of 80: the example of Newcombe (1998), method 10."""
    first = tally(*(result(f"{n}", n < 48) for n in range(80)))
    second = tally(*(result(f"{n}", n < 56) for n in range(70)))
    (line,) = compared(first, second)
    assert line == ("trace.m: a 0.600 passed of 80, b 0.800 of 70; difference +0.200 (+0.052 to +0.334); b is better")
    assert "b is worse" in next(compared(second, first))


def test_groups_without_verdicts_are_said_to_have_none() -> None:
    assert list(compared(tally(), tally())) == []
    assert "only in b: 1.000 passed of 1" in next(compared(tally(), tally(result("a", True))))
    assert "no verdicts (a: 1, b: 0" in next(compared(tally(result("a", None)), tally()))
