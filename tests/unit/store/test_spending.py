"""Reserved and settled judge costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import Store

DAY_S = 86_400.0
DAY = 20_833 * DAY_S
"""A day's beginning, UTC."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def today(store: Store, now: float = DAY) -> float:
    return store.spending.spent(now)


def reserved(store: Store, usd: float, most: float | None = None, now: float = DAY) -> bool:
    return bool(store.spending.reserve(usd, most, now).result())


@pytest.mark.parametrize(
    ("usd", "most", "granted"),
    [
        (1.0, 1.0, True),
        (1.0, None, True),
        (1.0 + 5e-10, 1.0, True),  # sums of floats
        (1e-9, 0.0, True),  # equal to the tolerance
        (1.0 + 2e-9, 1.0, False),
        (0.0, 0.0, True),
    ],
)
def test_money_is_reserved_only_within_the_budget(store: Store, usd: float, most: float | None, granted: bool) -> None:
    assert reserved(store, usd, most) is granted
    assert today(store) == (pytest.approx(usd) if granted else 0.0)


def test_reserved_and_spent_money_count_together(store: Store) -> None:
    assert reserved(store, 0.4)
    assert reserved(store, 0.4, 1.0)
    assert not reserved(store, 0.4, 1.0)
    store.spending.settle(0.4, 0.1, DAY).result()
    assert today(store) == pytest.approx(0.5)
    assert reserved(store, 0.4, 1.0)


@pytest.mark.parametrize("spent", [-1.0, math.nan, math.inf])
def test_an_invalid_cost_counts_as_the_reserved_amount(store: Store, spent: float) -> None:
    reserved(store, 0.4)
    store.spending.settle(0.4, spent, DAY).result()
    assert today(store) == 0.4
    store.spending.settle_all().result()
    assert today(store) == 0.4, "nothing is reserved any more"


def test_a_cost_of_zero_is_valid(store: Store) -> None:
    reserved(store, 0.4)
    store.spending.settle(0.4, 0.0, DAY).result()
    assert today(store) == 0.0


def test_a_cost_above_the_reservation_can_be_settled(store: Store) -> None:
    reserved(store, 0.1)
    store.spending.settle(0.3, 0.3, DAY).result()
    assert today(store) == 0.3
    assert reserved(store, 0.2, 0.5), "a reservation is never negative"


def test_a_cost_without_a_reservation_is_counted(store: Store) -> None:
    store.spending.settle(0.1, 0.3, DAY).result()
    assert today(store) == 0.3


def test_a_restart_counts_reservations_as_spent(store: Store) -> None:
    reserved(store, 0.4)
    store.spending.settle_all().result()
    store.spending.settle(0.4, 0.1, DAY).result()
    assert today(store) == 0.5


def test_costs_are_counted_per_day(store: Store) -> None:
    reserved(store, 0.4, now=DAY + DAY_S - 1)
    assert today(store, DAY) == 0.4
    assert today(store, DAY + DAY_S) == today(store, DAY - 1) == 0.0
    store.spending.settle(0.4, 0.2, DAY).result()
    assert today(store, DAY + DAY_S - 1) == 0.2


@pytest.mark.parametrize(
    ("back", "day"),
    [
        (-10.0, None),
        (0.0, DAY),
        (DAY_S, DAY),
        (1.5 * DAY_S, DAY),
        (2 * DAY_S, DAY),
        (2 * DAY_S + 1, None),
        (-DAY_S, None),
    ],
)
def test_a_clock_set_back_by_up_to_two_days_keeps_the_budget_day(store: Store, back: float, day: float | None) -> None:
    assert store.spending.today(DAY) == DAY, "no day has begun"
    reserved(store, 0.1, now=DAY + 10)
    now = DAY - back
    assert store.spending.today(now) == (now if day is None else day)


def test_costs_of_the_newest_31_days_are_kept(store: Store) -> None:
    for number in range(70):
        reserved(store, 0.1, now=DAY + number * DAY_S)
    store.forget(1.0, 1.0, store.clock.calendar()).result()
    left = [number for number in range(70) if store.spending.spent(DAY + number * DAY_S)]
    assert left == [*range(39, 70)]
