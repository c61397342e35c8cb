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
def test_insert_keeps_all_rows_in_order_with_few_statements(connection: sqlite3.Connection, number: int) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    rows = [(f"key {n}", n) for n in range(number)]
    insert(connection, "things", iter(rows))
    connection.set_trace_callback(None)
    assert things(connection) == rows
    assert len(statements) <= number // 64 + 3


def test_insert_of_some_columns_uses_defaults_for_the_rest(connection: sqlite3.Connection) -> None:
    insert(connection, "things (key)", [("a",), ("b",)])
    assert things(connection) == [("a", 7), ("b", 7)]


def test_a_later_row_replaces_an_earlier_one_on_conflict(connection: sqlite3.Connection) -> None:
    insert(
        connection, "things", [("a", 1), ("b", 2), ("a", 3)], "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    )
    assert things(connection) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(("verb", "stands"), [("INSERT OR IGNORE", 1), ("INSERT OR REPLACE", 2)])
def test_an_existing_row_is_kept_or_replaced_as_the_verb_requires(
    connection: sqlite3.Connection, verb: str, stands: int
) -> None:
    insert(connection, "things", [("a", 1)])
    insert(connection, "things", [("a", 2)], verb=verb)
    assert things(connection) == [("a", stands)]
