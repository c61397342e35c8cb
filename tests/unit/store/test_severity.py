"""Severity and rank of units."""

from __future__ import annotations

import pytest

from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED, badness_of
from pandaeval_collector.store.listed_pages import end_of as end

Verdict = tuple[bool | None, float | None]


@pytest.mark.parametrize(
    ("results", "broken", "badness", "failures"),
    [
        ([], False, NOT_FAILED + NO_SCORE, 0),
        ([], True, 0.0, 1),
        ([(True, 0.75)], False, NOT_FAILED + 0.75, 0),
        ([(False, 0.25)], False, 0.25, 1),
        ([(False, 0.25)], True, 0.0, 2),
        ([(True, 0.1), (False, 0.4)], False, 0.1, 1),
        ([(False, 0.4), (True, 0.1)], False, 0.1, 1),
        ([(False, 0.4), (False, 0.3), (None, None)], False, 0.3, 2),
        ([(None, None)], False, NOT_FAILED + NO_SCORE, 0),
        ([(None, 0.5)], False, NOT_FAILED + 0.5, 0),
        ([(False, None)], False, NO_SCORE, 1),
        ([(True, 0.0)], False, NOT_FAILED, 0),
        ([(True, 0.126)], False, NOT_FAILED + 0.13, 0),
        ([(True, 0.124)], False, NOT_FAILED + 0.12, 0),
    ],
)
def test_badness_is_the_worst_signal_and_failures_come_first(
    results: list[Verdict], broken: bool, badness: float, failures: int
) -> None:
    assert badness_of(results, broken) == (badness, failures)


ROWS = [(number, 0, 0.25 * number, 0, b"{}", 1000 + number) for number in range(1, 4)]


@pytest.mark.parametrize(
    ("limit", "key", "position"),
    [
        (2, "badness", (0.5, 2)),
        (2, "at", (1002, 2)),
        (1, "badness", (0.25, 1)),
        (3, "badness", None),
        (4, "at", None),
    ],
)
def test_a_page_has_an_end_position_only_if_more_rows_follow(
    limit: int, key: str, position: tuple[float, int] | None
) -> None:
    assert end(ROWS, limit, key) == position
