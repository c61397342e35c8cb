"""What judges cost: what is set aside and settled of a day's dollars and tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import Store
from pandaeval_collector.store.spending import Amounts, Most
from support.database import spent_tokens

DAY_S = 86_400.0
DAY = 20_833 * DAY_S
"""A day's beginning, UTC."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def today(store: Store, now: float = DAY) -> tuple[float, int]:
    return store.spending.spent(now), spent_tokens(store, now)


def reserved(store: Store, amounts: Amounts, most: Most = (None, None), now: float = DAY) -> bool:
    return bool(store.spending.reserve(amounts, most, now).result())


@pytest.mark.parametrize(
    ("amounts", "most", "granted"),
    [
        ((1.0, 10), (1.0, 10), True),
        ((1.0, 10), (None, None), True),
        ((1.0 + 5e-10, 10), (1.0, 10), True),  # sums of floats
        ((1e-9, 0), (0.0, 0), True),  # as much as that tolerance
        ((1.0 + 2e-9, 10), (1.0, 10), False),
        ((0.5, 11), (1.0, 10), False),
        ((1.1, 1), (1.0, None), False),
        ((1.1, 11), (None, 10), False),
        ((0.0, 0), (0.0, 0), True),
    ],
)
def test_money_and_tokens_are_set_aside_both_or_neither(
    store: Store, amounts: Amounts, most: Most, granted: bool
) -> None:
    assert reserved(store, amounts, most) is granted
    assert today(store) == ((pytest.approx(amounts[0]), amounts[1]) if granted else (0.0, 0))


def test_what_is_set_aside_and_what_is_spent_count_together(store: Store) -> None:
    assert reserved(store, (0.4, 100))
    assert reserved(store, (0.4, 100), (1.0, 200))
    assert not reserved(store, (0.4, 0), (1.0, None))
    store.spending.settle((0.4, 100), (0.1, 30), DAY).result()
    assert today(store) == (pytest.approx(0.5), 130)
    assert reserved(store, (0.4, 70), (1.0, 200))
    assert not reserved(store, (0.0, 1), (1.0, 200))


@pytest.mark.parametrize("spent", [-1.0, math.nan, math.inf])
def test_what_is_no_amount_counts_as_what_was_set_aside(store: Store, spent: float) -> None:
    reserved(store, (0.4, 100))
    store.spending.settle((0.4, 100), (spent, spent), DAY).result()
    assert today(store) == (0.4, 100)
    store.spending.settle_all().result()
    assert today(store) == (0.4, 100), "nothing is set aside any more"


def test_nothing_spent_is_an_amount(store: Store) -> None:
    reserved(store, (0.4, 100))
    store.spending.settle((0.4, 100), (0.0, 0.0), DAY).result()
    assert today(store) == (0.0, 0)


def test_more_than_was_set_aside_can_be_settled(store: Store) -> None:
    reserved(store, (0.1, 10))
    store.spending.settle((0.3, 30), (0.3, 30), DAY).result()
    assert today(store) == (0.3, 30)
    assert reserved(store, (0.2, 20), (0.5, 50)), "a reservation is never below nothing"


def test_what_nobody_set_aside_is_spent_all_the_same(store: Store) -> None:
    store.spending.settle((0.1, 10), (0.3, 30), DAY).result()
    assert today(store) == (0.3, 30)


def test_a_restart_counts_what_was_set_aside_as_spent(store: Store) -> None:
    reserved(store, (0.4, 100))
    store.spending.settle_all().result()
    store.spending.settle((0.4, 100), (0.1, 10), DAY).result()
    assert today(store) == (0.5, 110)


def test_each_day_has_its_own(store: Store) -> None:
    reserved(store, (0.4, 100), now=DAY + DAY_S - 1)
    assert today(store, DAY) == (0.4, 100)
    assert today(store, DAY + DAY_S) == (0.0, 0)
    assert today(store, DAY - 1) == (0.0, 0)
    store.spending.settle((0.4, 100), (0.2, 50), DAY).result()
    assert today(store, DAY + DAY_S - 1) == (0.2, 50)


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
def test_a_clock_set_back_by_less_than_two_days_stays_with_the_day(
    store: Store, back: float, day: float | None
) -> None:
    assert store.spending.today(DAY) == DAY, "no day was begun"
    reserved(store, (0.1, 1), now=DAY + 10)
    now = DAY - back
    assert store.spending.today(now) == (now if day is None else day)


def test_two_months_of_days_are_remembered(store: Store) -> None:
    for number in range(70):
        reserved(store, (0.1, 1), now=DAY + number * DAY_S)
    store.forget(1.0, 1.0, store.clock.calendar()).result()
    left = [number for number in range(70) if store.spending.spent(DAY + number * DAY_S)]
    assert left == [*range(39, 70)]
