"""Batches fall back to single items."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pandaeval_collector.base.isolated import Isolated


@pytest.mark.parametrize(
    ("items", "bad", "tried"),
    [
        ([1, 2, 3], (), [[1, 2, 3]]),
        ([1, 2, 3], (2,), [[1, 2, 3], [1], [2], [3]]),
        ([2], (2,), [[2]]),
        ([], (), [[]]),
    ],
)
def test_only_items_that_fail_on_their_own_are_lost(
    items: Sequence[int], bad: Sequence[int], tried: list[list[int]]
) -> None:
    attempts, failed = list[list[int]](), list[int]()
    parts = Isolated(items)
    for part in parts:
        attempts.append([*part])
        if set(part) & set(bad) and not parts.split():
            failed += part
    assert attempts == tried
    assert failed == [*bad]
