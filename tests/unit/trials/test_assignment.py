"""Optimal matching against brute force."""

from __future__ import annotations

import itertools
import random

import pytest

from pandaeval_lab.cases.arguments import best_matching


def _best(worth: list[list[float]]) -> float:
    """Return the largest sum by brute force."""
    rows, columns = len(worth), len(worth[0])
    if rows > columns:
        return _best([list(each) for each in zip(*worth, strict=True)])
    ways = itertools.permutations(range(columns), rows)
    return max(sum(worth[row][column] for row, column in enumerate(way)) for way in ways)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.25, 0.5, 1.0), (-1.0, 0.0, 3.0), tuple(range(100))])
def test_the_best_matching_equals_the_brute_force_optimum(rows: int, columns: int, values: tuple[float, ...]) -> None:
    chance = random.Random(rows * 10 + columns)
    for _ in range(12):
        worth = [[chance.choice(values) for _ in range(columns)] for _ in range(rows)]
        pairs = best_matching(worth)
        assert sum(worth[row][column] for row, column in pairs) == pytest.approx(_best(worth))
        assert [row for row, _ in pairs] == sorted({row for row, _ in pairs})
        assert len({column for _, column in pairs}) == len(pairs) == min(rows, columns)


@pytest.mark.parametrize("worth", [[], [[]], [[], []]])
def test_empty_rows_or_columns_give_no_pairs(worth: list[list[float]]) -> None:
    assert best_matching(worth) == []
