"""Bulk inserts keep rows and order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from pandaeval_collector.store.table import insert


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("CREATE TABLE things (key TEXT PRIMARY KEY, value INTEGER DEFAULT 7)")
        yield made


def things(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return connection.execute("SELECT key, value FROM things ORDER BY rowid").fetchall()


@pytest.mark.parametrize("number", [0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 200, 1000])
def test_all_rows_in_their_order(connection: sqlite3.Connection, number: int) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    rows = [(f"key {n}", n) for n in range(number)]
    insert(connection, "things", iter(rows))
    connection.set_trace_callback(None)
    assert things(connection) == rows
    assert len(statements) <= number // 64 + 3


def test_some_columns(connection: sqlite3.Connection) -> None:
    insert(connection, "things (key)", [("a",), ("b",)])
    assert things(connection) == [("a", 7), ("b", 7)]


def test_a_later_row_stands_in_for_an_earlier_one(connection: sqlite3.Connection) -> None:
    insert(
        connection, "things", [("a", 1), ("b", 2), ("a", 3)], "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    )
    assert things(connection) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(("verb", "stands"), [("INSERT OR IGNORE", 1), ("INSERT OR REPLACE", 2)])
def test_what_is_there_already(connection: sqlite3.Connection, verb: str, stands: int) -> None:
    insert(connection, "things", [("a", 1)])
    insert(connection, "things", [("a", 2)], verb=verb)
    assert things(connection) == [("a", stands)]
