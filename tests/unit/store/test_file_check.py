"""SQLite's check of the file accepts every table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pandaeval_collector.store import Store
from pandaeval_collector.store.schema import TABLES
from pandaeval_collector.store.triage import Triage, triages

_VALUES = {"TEXT": "x", "INTEGER": 1, "REAL": 1.0, "BLOB": b"x", "": "x"}


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        yield connection


def test_the_check_accepts_a_row_in_every_table(tables: sqlite3.Connection) -> None:
    names = [name for (name,) in tables.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for name in [name for name in names if not name.startswith("sqlite_")]:
        columns = tables.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
        marks = ", ".join("?" * len(columns))
        tables.execute(f"INSERT INTO {name} VALUES ({marks})", [_VALUES[type_] for _, type_ in columns])
    assert len(names) > 30
    assert tables.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    assert tables.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_tables_without_rowid_have_their_key_columns_first(tables: sqlite3.Connection) -> None:
    """With key columns in other places, the check of SQLite 3.40 reads wrong values. Later versions do not."""
    wide = tables.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr").fetchall()
    assert len(wide) > 10
    for (name,) in wide:
        keys = [key for (key,) in tables.execute("SELECT pk FROM pragma_table_info(?) ORDER BY cid", (name,))]
        count = sum(key > 0 for key in keys)
        assert keys[:count] == [*range(1, count + 1)], name


def test_states_of_incidents_outlive_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    store.triage.mark(["2f047083815a"], Triage("resolved", "restarted", "kim", 5)).result()
    store.close()
    again = Store(tmp_path, "off")
    assert triages(again.reads.connection()) == {"2f047083815a": Triage("resolved", "restarted", "kim", 5)}
    again.close()
    assert not [*tmp_path.glob("*damaged*")]
