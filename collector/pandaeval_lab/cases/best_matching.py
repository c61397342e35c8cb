"""The best one-to-one matching of rows with columns (the Hungarian algorithm with potentials, Kuhn 1955)."""

from __future__ import annotations

from collections.abc import Sequence


def best_matching(worth: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Returns the pairs (row, column), by row, with the largest sum of values; as many pairs as the shorter side has.
    All rows have the same length. Takes (shorter side)² × longer side steps."""
    if not worth or not worth[0]:
        return []
    if len(worth) > len(worth[0]):
        turned = best_matching([*zip(*worth, strict=True)])
        return sorted((row, column) for column, row in turned)
    columns = len(worth[0])
    row_price, column_price = [0.0] * (len(worth) + 1), [0.0] * (columns + 1)
    taken_by = [0] * (columns + 1)
    """The row, from 1, that has a column, from 1; 0: nobody."""
    for row in range(1, len(worth) + 1):
        _place(row, worth, row_price, column_price, taken_by)
    return sorted((row - 1, column - 1) for column, row in enumerate(taken_by) if column and row)


def _place(
    row: int,
    worth: Sequence[Sequence[float]],
    row_price: list[float],
    column_price: list[float],
    taken_by: list[int],
) -> None:
    """Gives ``row`` a column, and others another one where that is better for all."""
    size = len(column_price)
    slack, came_from, seen = [float("inf")] * size, [0] * size, [False] * size
    taken_by[0], column = row, 0
    while taken_by[column]:
        seen[column] = True
        current, step, following = taken_by[column], float("inf"), 0
        for other in range(1, size):
            if seen[other]:
                continue
            cost = -worth[current - 1][other - 1] - row_price[current] - column_price[other]
            if cost < slack[other]:
                slack[other], came_from[other] = cost, column
            if slack[other] < step:
                step, following = slack[other], other
        for other in range(size):
            if seen[other]:
                row_price[taken_by[other]] += step
                column_price[other] -= step
            else:
                slack[other] -= step
        column = following
    while column:
        taken_by[column] = taken_by[came_from[column]]
        column = came_from[column]
