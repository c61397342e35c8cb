"""The table of series."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson
import pytest

from pandaeval_collector.store import SeriesRow, Store, series_table
from pandaeval_collector.store.table import StoreTable

N = "pandaeval.evaluations"
PAIRS = {"a": (("agent", "a"),), "b": (("agent", "b"),)}


def text(pairs: object) -> str:
    return orjson.dumps(pairs).decode()


def row(agent: str = "a", name: str = N, count: int = 1, **more: Any) -> SeriesRow:
    given = {"width": 3, "total": 0.5, "buckets": {1: count}, "exemplars": {1: (0.5, "t", "s", 9)}, **more}
    return SeriesRow(name, text(PAIRS[agent]), count=count, **given)


def key(agent: str = "a", name: str = N) -> str:
    return series_table.key_of(name, text(PAIRS[agent]))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    Store(tmp_path, "off").close()
    connection = sqlite3.connect(tmp_path / "pandaeval.db", isolation_level=None)
    yield connection
    connection.close()


def stands(table: sqlite3.Connection) -> dict[str, tuple[Any, ...]]:
    found = table.execute("SELECT key, start_ns, count, total, buckets, exemplars, zero_otlp, zero_scrape FROM series")
    return {each[0]: (*each[1:4], orjson.loads(each[4]), orjson.loads(each[5]), *each[6:]) for each in found}


def test_the_key_is_a_hash_of_the_name_and_the_attributes() -> None:
    given = f"{N}\0" + text(PAIRS["a"])
    assert key() == hashlib.blake2b(given.encode(), digest_size=16).hexdigest()
    assert len({key(), key("b"), key(name="m")}) == 3
    assert series_table.attributes_of(text(PAIRS["a"])) == PAIRS["a"]
    assert series_table.attributes_of('[["n", 1]]') == (("n", "1"),)


def test_increments_add_up_within_a_batch_and_over_batches(table: sqlite3.Connection) -> None:
    series_table.add(table, [row(count=2), row(count=3, buckets={0: 1, 2: 2}, exemplars={2: (0.9, "u", "v", 10)})], 1.5)
    assert stands(table) == {
        key(): (
            *(1_500_000_000, 5, 1.0),
            *([1, 2, 2], {"1": [0.5, "t", "s", 9], "2": [0.9, "u", "v", 10]}),
            *(None, None),
        )
    }
    series_table.add(table, [row(exemplars={1: (0.6, "w", "x", 11)}), row("b", exemplars={})], 7.0)
    assert stands(table)[key()][:5] == (
        *(1_500_000_000, 6, 1.5, [1, 3, 2]),
        {"1": [0.6, "w", "x", 11], "2": [0.9, "u", "v", 10]},
    )
    assert stands(table)[key("b")] == (7_000_000_000, 1, 0.5, [0, 1, 0], {}, None, None)


class AtOnce:
    """A writer on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def write(
        self, work: Callable[..., Any], table: StoreTable, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(table, self._connection, *arguments, **options))
        return future


def note_zeros(table: sqlite3.Connection, reader: str, keys: Sequence[str], at: float) -> None:
    series_table.SeriesTable(lambda: table, AtOnce(table)).show_zeros(reader, keys, at)


def test_an_empty_batch_changes_nothing(table: sqlite3.Connection) -> None:
    series_table.add(table, [], 1.0)
    assert stands(table) == {}


def test_pages_have_one_name_and_are_ordered_by_key(table: sqlite3.Connection) -> None:
    series_table.add(table, [row(), row("b"), row(name="m")], 2.0)
    note_zeros(table, "otlp", [key()], 3.0)
    ours = sorted([key(), key("b")])
    found = series_table.SeriesTable(lambda: table).page("otlp", N, "", 10)
    assert [each.key for each in found] == ours
    assert [each.key for each in series_table.SeriesTable(lambda: table).page("otlp", N, "", 1)] == ours[:1]
    assert [each.key for each in series_table.SeriesTable(lambda: table).page("otlp", N, ours[0], 10)] == ours[1:]
    assert series_table.SeriesTable(lambda: table).page("otlp", N, ours[1], 10) == []
    assert {each.key: each.shown_at for each in found} == {key(): 3.0, key("b"): None}
    [first] = [each for each in found if each.key == key()]
    assert (first.instrument.name, first.attributes, first.start_ns) == (N, PAIRS["a"], 2_000_000_000)
    assert (first.count, first.total, first.buckets) == (1, 0.5, (0, 1, 0))
    assert dict(first.exemplars) == {1: (0.5, "t", "s", 9)}


def test_the_first_time_of_a_shown_zero_is_kept_per_reader(table: sqlite3.Connection) -> None:
    series_table.add(table, [row(), row("b")], 2.0)
    note_zeros(table, "otlp", [key()], 3.0)
    note_zeros(table, "otlp", [key()], 4.0)
    note_zeros(table, "scrape", [key("b"), "unknown"], 5.0)
    assert {at: each[-2:] for at, each in stands(table).items()} == {key(): (3.0, None), key("b"): (None, 5.0)}
