"""New series start at 0 for each reader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pandaeval_collector.exporters import zero_first
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.exporters.zero_first import ZeroFirst, new_ones, visible
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.series import SCORE, Exemplar, Point
from support.examples import examples
from support.results import SPAN_ID, TRACE_ID, result

HOLD_S = 10.0


class Life:
    """A store and a reader's view of it, across restarts."""

    def __init__(self, folder: Path, reader: str = "otlp") -> None:
        self._folder, self._reader = folder, reader
        self._store = Store(folder, "off")
        self._counted = 0
        self.now = 1_000.0
        self.seen: list[float] = []

    def count(self) -> None:
        self._counted += 1
        changes = WriteSet()
        Emitter().add([result(id=f"r{self._counted}")], (), changes)
        self._store.commit(changes).result()

    def read(self, arrives: bool = True, noted: bool = True, hold: bool = True) -> None:
        """Send the series. ``arrives``: received; ``noted``: recorded."""
        series = ZeroFirst(self._store, self._reader, HOLD_S)
        pages = series.pages(self.now, hold)
        points = [p for page in pages for p in page if p.instrument.name == "pandaeval.evaluations"]
        if arrives:
            self.seen += [point.total for point in points]
            if noted:
                asyncio.run(series.shown(new_ones(points), self.now))

    def crash(self) -> None:
        self._store.close()
        self._store = Store(self._folder, "off")

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path)
    yield made
    made.close()


def test_a_new_series_is_0_before_its_value(life: Life) -> None:
    life.count()
    life.read()
    life.now += HOLD_S
    life.read()
    life.count()
    life.read()
    assert life.seen == [0, 1, 2]


def test_every_series_is_on_exactly_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero_first, "PAGE", 7)
    store = Store(tmp_path, "off")
    changes = WriteSet()
    Emitter().add([result(id=f"r{n}", agent=f"a{n}") for n in range(50)], (), changes)
    store.commit(changes).result()
    pages = list(ZeroFirst(store, "scrape", 0.0).pages(0.0))
    found = [(point.instrument.name, point.attributes) for page in pages for point in page]
    assert max(map(len, pages)) == 7
    assert len(found) == len(set(found)) == 100
    names = [name for name, _ in found]
    assert names == sorted(names), "the series of an instrument are consecutive"
    store.close()


def test_zero_is_shown_until_the_hold_time_is_over(life: Life) -> None:
    life.count()
    for _ in range(3):
        life.read()
        life.now += HOLD_S / 2
    assert life.seen == [0, 0, 1]


def test_zero_is_still_shown_right_after_its_first_read(life: Life) -> None:
    life.count()
    life.read()
    life.read()
    assert life.seen == [0, 0]


def test_the_last_send_does_not_wait(life: Life) -> None:
    life.count()
    life.read()
    life.read(hold=False)
    assert life.seen == [0, 1]


def test_a_zero_that_was_not_received_is_sent_again(life: Life) -> None:
    life.count()
    life.read(arrives=False)
    life.now += HOLD_S
    life.read()
    assert life.seen == [0]


def test_a_crash_before_the_zero_is_recorded_repeats_it(life: Life) -> None:
    life.count()
    life.read(noted=False)
    life.crash()
    life.now += HOLD_S
    life.read()
    life.now += HOLD_S
    life.read()
    assert life.seen == [0, 0, 1]


def test_a_crash_after_the_zero_is_recorded_continues_with_the_value(life: Life) -> None:
    life.count()
    life.read()
    life.crash()
    life.now += HOLD_S
    life.read()
    assert life.seen == [0, 1]


def test_each_reader_has_its_own_zero(tmp_path: Path, life: Life) -> None:
    life.count()
    life.read()
    life.now += HOLD_S
    life._reader = "scrape"
    life.read()
    assert life.seen == [0, 0]


def test_a_clock_set_back_does_not_hide_the_value(life: Life) -> None:
    life.count()
    life.read()
    life.now -= 1e6
    life.read()
    assert life.seen == [0, 1]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(["count", "read", "lost", "unnoted", "crash", "wait"]), max_size=25))
def test_a_series_begins_at_0_and_never_falls_under_any_sequence_of_failures(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    life = Life(tmp_path_factory.mktemp("life"))
    for step in steps:
        match step:
            case "count":
                life.count()
            case "read":
                life.read()
            case "lost":
                life.read(arrives=False)
            case "unnoted":
                life.read(noted=False)
                life.crash()
            case "crash":
                life.crash()
            case "wait":
                life.now += HOLD_S
    life.close()
    assert life.seen[:1] in ([], [0])
    assert life.seen == sorted(life.seen)


POINT = Point(
    SCORE,
    (("gen_ai.evaluation.name", "coherence"), ("pandaeval.service", "shop")),
    7,
    3,
    1.2,
    (0, 0, 1, 0, 0, 2, *[0] * 7),
    ((2, Exemplar(0.2, TRACE_ID, SPAN_ID, 9)), (5, Exemplar(0.5, TRACE_ID, SPAN_ID, 8))),
    "k",
    100.0,
)
ZERO = replace(POINT, count=0, total=0.0, buckets=(0,) * 13, exemplars=())


@pytest.mark.parametrize(
    ("zero_at", "now", "shown"),
    [
        (None, 1e9, ZERO),
        (100.0, 100.0, ZERO),
        (100.0, 109.5, ZERO),
        (100.0, 110.0, POINT),
        (100.0, 99.5, POINT),
        (100.0, 1e9, POINT),
    ],
)
def test_the_time_of_the_first_zero_decides_whether_the_value_is_shown(
    zero_at: float | None, now: float, shown: Point
) -> None:
    assert visible([replace(POINT, shown_at=zero_at)], now, HOLD_S) == [replace(shown, shown_at=zero_at)]


def test_without_a_hold_time_only_new_series_are_0() -> None:
    assert visible([POINT, replace(POINT, shown_at=None)], 100.0, 0.0) == [POINT, replace(ZERO, shown_at=None)]


@pytest.mark.parametrize("changes", [{"buckets": (1,) * 12}, {"buckets": (1,) * 14}])
def test_a_series_with_another_number_of_buckets_is_left_out(changes: dict[str, Any]) -> None:
    assert visible([replace(POINT, **changes), POINT], 200.0, HOLD_S) == [POINT]


def test_a_series_is_new_if_it_has_a_key_and_was_never_shown() -> None:
    named = {"a": None, "b": 0.0, "c": 5.0, "": None, "d": None}
    assert new_ones(replace(POINT, key=key, shown_at=at) for key, at in named.items()) == ["a", "d"]


@pytest.mark.parametrize("number", [0, 1, 3, 4, 7])
async def test_shown_zeros_are_recorded_in_small_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(zero_first, "_NOTED_AT_ONCE", 3)
    store = Store(tmp_path, "off")
    changes = WriteSet()
    Emitter().add([result(id=f"r{n}", agent=f"a{n}") for n in range(8)], (), changes)
    store.commit(changes).result()
    name = "pandaeval.evaluations"
    keys = [row.key for row in store.reads.tally.page("otlp", name)]
    pieces, note = [], store.tally.show_zeros
    monkeypatch.setattr(
        store.tally, "show_zeros", lambda reader, some, now: pieces.append(len(some)) or note(reader, some, now)
    )
    await ZeroFirst(store, "otlp", HOLD_S).shown(keys[:number], 42.0)
    assert pieces == [3] * (number // 3) + [number % 3] * (number % 3 > 0)
    assert [row.shown_at for row in store.reads.tally.page("otlp", name)] == [42.0] * number + [None] * (8 - number)
    assert {row.shown_at for row in store.reads.tally.page("scrape", name)} == {None}, "the other reader"
    store.close()


def test_a_shown_value_includes_its_count(life: Life) -> None:
    life.count()
    life.read()
    life.now += HOLD_S
    pages = ZeroFirst(life._store, "otlp", HOLD_S).pages(life.now, True)
    counts = [point.count for page in pages for point in page if point.instrument.name == "pandaeval.evaluations"]
    assert counts == [1]
