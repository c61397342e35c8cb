"""Tool calls compared with expected tools."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.analysis.stats.tools import common_order
from pandaeval_collector.stats import plan_order, step_efficiency, tool_routing_accuracy, tool_selection_f1
from pandaeval_lab.cases.arguments import best_matching

VECTORS = Path(__file__).parents[4].parent / "shared" / "vectors" / "tools.json"
OWN = [
    # expected, actual, order, routing, f1, efficiency
    ([], [], 1.0, 1.0, 1.0, None),
    ([], ["a"], 1.0, 1.0, 0.0, 0.0),
    (["a"], [], 0.0, 0.0, 0.0, None),
    (["a", "b"], ["b"], 0.5, 0.0, 2 / 3, 1.0),
    (["a", "b", "c"], ["a", "x", "b", "c"], 1.0, 1 / 3, 6 / 7, 0.75),
    (["a", "b", "c"], ["c", "b", "a"], 1 / 3, 1 / 3, 1.0, 1.0),
    (["a", "a", "b"], ["a", "b", "b"], 2 / 3, 2 / 3, 2 / 3, 1.0),
    (["a", "b"], ["x", "a", "b", "a"], 1.0, 0.0, 2 / 3, 0.5),
]


def near(expected: Any) -> Any:
    return None if expected is None else pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize(("expected", "actual", "order", "routing", "f1", "efficiency"), OWN)
def test_tool_metrics_match_hand_computed_values(
    expected: list[str], actual: list[str], order: float, routing: float, f1: float, efficiency: float | None
) -> None:
    assert plan_order(actual, expected) == near(order)
    assert tool_routing_accuracy(actual, expected) == near(routing)
    assert tool_selection_f1(actual, expected) == near(f1)
    assert step_efficiency(len(actual), len(expected)) == near(efficiency)


@pytest.mark.skipif(not VECTORS.exists(), reason="the shared vectors are not here")
def test_shared_vectors() -> None:
    for case in json.loads(VECTORS.read_text()):
        expected, actual = case["expected"], case["actual"]
        assert plan_order(actual, expected) == near(case["plan_quality_in_order"]), case
        assert tool_routing_accuracy(actual, expected) == near(case["tool_routing_accuracy"]), case
        assert tool_selection_f1(actual, expected) == near(case["tool_selection_f1"]), case
        assert step_efficiency(len(actual), len(expected)) == near(case["step_efficiency"]), case


def test_best_matching_has_the_highest_total_worth() -> None:
    draw = random.Random(7)
    for _ in range(60):
        rows, columns = draw.randint(1, 5), draw.randint(1, 5)
        worth = [[draw.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(columns)] for _ in range(rows)]
        found = best_matching(worth)
        short, long = sorted((rows, columns))
        every = (
            sum(worth[at][other] if rows <= columns else worth[other][at] for at, other in enumerate(chosen))
            for chosen in itertools.permutations(range(long), short)
        )
        assert len(found) == short == len({row for row, _ in found}) == len({column for _, column in found})
        assert sum(worth[row][column] for row, column in found) == pytest.approx(max(every))


@pytest.mark.parametrize("names", ["ab", "abc", "abcdef"])
def test_common_order_is_the_length_of_the_longest_common_subsequence(names: str) -> None:
    """Tries every choice of steps."""
    draw = random.Random(names)
    for _ in range(40):
        one, other = ([draw.choice(names) for _ in range(draw.randint(0, 7))] for _ in range(2))

        def is_in_other(chosen: tuple[str, ...], other: list[str] = other) -> bool:
            left = iter(other)
            return all(item in left for item in chosen)

        lengths = (size for size in range(len(one), -1, -1) if any(map(is_in_other, itertools.combinations(one, size))))
        assert common_order(one, other) == next(lengths)


def test_best_matching_of_an_empty_matrix_is_empty() -> None:
    assert best_matching([]) == []
    assert best_matching([[]]) == []
