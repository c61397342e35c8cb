"""Which rows of the waterfall are the later rounds of a loop."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.show.report.loops import folds


def _rows(*shape: tuple[str, int]) -> list[dict[str, Any]]:
    """Rows from (id, row of the parent)."""
    rows: list[dict[str, Any]] = []
    for id_, up in shape:
        rows.append({"id": id_, "up": up, "depth": rows[up]["depth"] + 1 if up >= 0 else 0})
    return rows


def _cycle(*span_ids: str, kind: str = "repeat", rounds: int = 0) -> dict[str, Any]:
    return {
        "kind": kind,
        "rounds": rounds or len(span_ids),
        "tools": ["search"],
        "agents": [],
        "span_ids": list(span_ids),
        "wasted_calls": len(span_ids) - 1,
        "seconds": 1.5,
        "tokens": 10,
    }


FLAT = _rows(("agent", -1), ("m1", 0), ("t1", 0), ("m2", 0), ("t2", 0), ("m3", 0), ("t3", 0), ("m4", 0))


def test_later_rounds_fold_with_the_model_calls_between_them() -> None:
    [loop] = folds(FLAT, [_cycle("t1", "t2", "t3")])
    assert (loop["first"], loop["last"]) == (3, 6)
    assert loop["calls"] == [[2, 1], [4, 2], [6, 3]]
    assert (loop["rounds"], loop["wasted"], loop["seconds"], loop["tokens"]) == (3, 2, 1.5, 10)


def test_calls_below_steps_fold_by_their_steps() -> None:
    rows = _rows(("agent", -1), ("s1", 0), ("t1", 1), ("s2", 0), ("m", 3), ("t2", 3), ("s3", 0))
    [loop] = folds(rows, [_cycle("t1", "t2")])
    assert (loop["first"], loop["last"]) == (3, 5)


def test_a_cycle_of_two_calls_begins_with_its_second_round() -> None:
    rows = _rows(("agent", -1), ("a1", 0), ("b1", 0), ("a2", 0), ("b2", 0), ("end", 0))
    [loop] = folds(rows, [_cycle("a1", "b1", "a2", "b2", kind="cycle2", rounds=2)])
    assert (loop["first"], loop["last"]) == (3, 4)
    assert [number for _, number in loop["calls"]] == [1, 1, 2, 2]


def test_of_overlapping_cycles_one_is_folded_and_all_are_marked() -> None:
    found = folds(FLAT, [_cycle("t1", "t2", "t3"), _cycle("t2", "t3")])
    assert [loop["first"] for loop in found] == [3, None]
    assert found[1]["calls"] == [[4, 1], [6, 2]]


def test_calls_within_each_other_or_out_of_sight_are_not_folded() -> None:
    nested = _rows(("agent", -1), ("t1", 0), ("t2", 1))
    assert folds(nested, [_cycle("t1", "t2")])[0]["first"] is None
    assert folds(FLAT, [_cycle("gone", "t2", "left out")])[0]["first"] is None
    assert folds(FLAT, []) == []


def test_roots_fold_too() -> None:
    rows = _rows(("t1", -1), ("t2", -1), ("t3", -1))
    [loop] = folds(rows, [_cycle("t1", "t2", "t3")])
    assert (loop["first"], loop["last"]) == (1, 2)
