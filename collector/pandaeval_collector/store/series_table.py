"""The table of score series."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

import orjson

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import SeriesRow
from pandaeval_collector.store.series import INSTRUMENTS, Exemplar, Point
from pandaeval_collector.store.table import StoreTable, insert, written

_ZEROS = {"otlp": "zero_otlp", "scrape": "zero_scrape"}
"""Column, by reader, that notes when the reader saw a series as 0."""


class SeriesTable(StoreTable):
    def page(self, reader: str, name: str, after: str = "", limit: int = 1000) -> list[Point]:
        """Return up to ``limit`` series of a name after the key ``after``. ``reader``: ``otlp`` or ``scrape``."""
        rows = self._rows(
            f"""SELECT attributes, start_ns, count, total, buckets, exemplars, key, {_ZEROS[reader]}
                FROM series WHERE key > ? AND name = ? ORDER BY key LIMIT ?""",  # noqa: S608
            *(after, name, limit),
        )
        points = []
        for attributes, start_ns, count, total, buckets, exemplars, *shown in rows:
            examples = sorted((int(index), Exemplar(*facts)) for index, facts in orjson.loads(exemplars).items())
            measured = count, total, tuple(orjson.loads(buckets)), tuple(examples)
            points.append(Point(INSTRUMENTS[name], attributes_of(attributes), start_ns, *measured, *shown))
        return points

    def names(self) -> list[tuple[str, Attributes]]:
        return [(name, attributes_of(written)) for name, written in self._rows("SELECT name, attributes FROM series")]

    def labels(self) -> list[tuple[str, str]]:
        return self._rows("SELECT kind, value FROM labels")

    @written
    def show_zeros(self, connection: sqlite3.Connection, reader: str, keys: Sequence[str], now: float) -> None:
        """Note that a reader has seen these series as 0."""
        column = _ZEROS[reader]
        statement = f"UPDATE series SET {column} = ? WHERE key = ? AND {column} IS NULL"  # noqa: S608
        connection.executemany(statement, [(now, key) for key in keys])


def add(connection: sqlite3.Connection, added: Sequence[SeriesRow], now: float) -> None:
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


def attributes_of(written: str) -> Attributes:
    return tuple((str(name), str(value)) for name, value in orjson.loads(written))


def key_of(name: str, attributes: str) -> str:
    return hashlib.blake2b(f"{name}\0{attributes}".encode(), digest_size=16).hexdigest()
