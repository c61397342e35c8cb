"""The score series as a table of the store: increments are added, series are read in pages and merged into others."""

from __future__ import annotations

import functools
import hashlib
import itertools
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import orjson

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import SeriesRow, StoredSeries
from pandaeval_collector.store.series import folded
from pandaeval_collector.store.table import StoreTable, insert

_ZEROS = {"otlp": "zero_otlp", "scrape": "zero_scrape"}
"""Which column notes that a reader was shown a series as 0."""
_MOVED_AT_ONCE = 200
"""Series in one transaction: senders wait meanwhile."""


class SeriesTable(StoreTable):
    """The table of score series: increments are added, it is read in pages, and series are merged into others."""

    def page(self, reader: str, name: str, after: str = "", limit: int = 1000) -> list[StoredSeries]:
        """Returns up to ``limit`` score series of one name in order of their keys, from behind the key ``after``.
        ``reader``: ``otlp`` or ``scrape``."""
        rows = self._rows(
            f"""SELECT key, name, attributes, start_ns, count, total, buckets, exemplars, {_ZEROS[reader]}
                FROM series WHERE key > ? AND name = ? ORDER BY key LIMIT ?""",  # noqa: S608
            *(after, name, limit),
        )
        series = []
        for key, _, attributes, start_ns, count, total, buckets, exemplars, zero_at in rows:
            shown = {int(index): tuple(exemplar) for index, exemplar in orjson.loads(exemplars).items()}
            counts = tuple(orjson.loads(buckets))
            series.append(StoredSeries(key, name, attributes, start_ns, count, total, counts, shown, zero_at))
        return series

    def names(self) -> list[tuple[str, Attributes]]:
        """Names and attributes of all score series."""
        return [(name, attributes_of(written)) for name, written in self._rows("SELECT name, attributes FROM series")]

    def labels(self) -> list[tuple[str, str]]:
        """The label values that were admitted so far."""
        return self._rows("SELECT kind, value FROM labels")

    def show_zeros(self, reader: str, keys: Sequence[str], now: float) -> Future[None]:
        """Notes that a reader was shown these series as 0."""
        column = _ZEROS[reader]
        statement = f"UPDATE series SET {column} = ? WHERE key = ? AND {column} IS NULL"  # noqa: S608
        values = [(now, key) for key in keys]
        return self._writer.submit(lambda connection: connection.executemany(statement, values).rowcount)

    def bound(self, most: int) -> int:
        """Makes series beyond ``most``, as many as another configuration may have left behind, part of those of
        ``__other__``, the youngest first. Returns how many. Blocks."""
        rows = self._rows("SELECT key, attributes FROM series ORDER BY start_ns, key")
        ours = [key for key, written in rows if folded(attributes := attributes_of(written)) != attributes]
        beyond = ours[most:]
        return sum(
            self._writer.submit(functools.partial(move, keys=beyond[at : at + _MOVED_AT_ONCE], renamed=folded)).result()
            for at in range(0, len(beyond), _MOVED_AT_ONCE)
        )


def add(connection: sqlite3.Connection, added: Sequence[SeriesRow], now: float) -> None:
    """Adds increments to the series. Takes time in proportion to the increments, not to the table."""
    keys = [key_of(row.name, row.attributes) for row in added]
    standing: dict[str, tuple[float, float, list[int], dict[str, object]]] = {}
    query = "SELECT key, count, total, buckets, exemplars FROM series WHERE key IN ({marks})"
    for key, count, total, buckets, exemplars in numbers.each_of(connection, query, set(keys)):
        standing[key] = count, total, orjson.loads(buckets), orjson.loads(exemplars)
    by_key = dict(zip(keys, added, strict=True))
    for key, row in zip(keys, added, strict=True):
        count, total, buckets, exemplars = standing.get(key) or (0, 0.0, [0] * row.width, {})
        for index, number in row.buckets.items():
            buckets[index] += number
        exemplars.update({str(index): tuple(exemplar) for index, exemplar in row.exemplars.items()})
        standing[key] = count + row.count, total + row.total, buckets, exemplars
    insert(
        connection,
        "series (key, name, attributes, start_ns, count, total, buckets, exemplars)",
        [
            (
                key,
                by_key[key].name,
                by_key[key].attributes,
                int(now * 1e9),
                count,
                total,
                orjson.dumps(buckets).decode(),
                orjson.dumps(exemplars).decode(),
            )
            for key, (count, total, buckets, exemplars) in standing.items()
        ],
        """ON CONFLICT (key) DO UPDATE SET count = excluded.count, total = excluded.total,
           buckets = excluded.buckets, exemplars = excluded.exemplars""",
    )


def move(connection: sqlite3.Connection, keys: Sequence[str], renamed: Callable[[Attributes], Attributes]) -> int:
    """Moves series to other attributes and adds them to what stands there; returns how many moved. Readers have seen
    them, so none begins at 0 again. Memory is taken for one of them at a time."""
    moved = 0
    for key in keys:
        row = connection.execute(
            """SELECT name, attributes, start_ns, count, total, buckets, exemplars, zero_otlp, zero_scrape
               FROM series WHERE key = ?""",
            (key,),
        ).fetchone()
        if row is None or (after := renamed(before := attributes_of(row[1]))) == before:
            continue
        connection.execute("DELETE FROM series WHERE key = ?", (key,))
        _join(connection, row[0], orjson.dumps(after).decode(), row[2:])
        moved += 1
    return moved


def attributes_of(written: str) -> Attributes:
    """Reads the attributes of a series from its row."""
    return tuple((str(name), str(value)) for name, value in orjson.loads(written))


def key_of(name: str, attributes: str) -> str:
    """Computes the key of a series."""
    return hashlib.blake2b(f"{name}\0{attributes}".encode(), digest_size=16).hexdigest()


def _join(connection: sqlite3.Connection, name: str, attributes: str, row: Sequence[Any]) -> None:
    start_ns, count, total, buckets, exemplars, *zeros = row
    key = key_of(name, attributes)
    there = connection.execute(
        "SELECT start_ns, count, total, buckets, exemplars, zero_otlp, zero_scrape FROM series WHERE key = ?", (key,)
    ).fetchone()
    if there is not None:
        start_ns, count, total = min(start_ns, there[0]), count + there[1], total + there[2]
        both = itertools.zip_longest(orjson.loads(there[3]), orjson.loads(buckets), fillvalue=0)
        buckets = orjson.dumps([one + other for one, other in both]).decode()
        exemplars = orjson.dumps(orjson.loads(exemplars) | orjson.loads(there[4])).decode()
        zeros = [standing if standing is not None else own for standing, own in zip(there[5:], zeros, strict=True)]
    connection.execute(
        "INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (key, name, attributes, start_ns, count, total, buckets, exemplars, *zeros),
    )
