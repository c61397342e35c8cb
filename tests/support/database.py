"""SQLite files opened beside the collector."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pandaeval_collector.store import Store
from pandaeval_collector.store.connection import FILE_NAME


@contextmanager
def open_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection that commits and closes at the end of the block."""
    with closing(sqlite3.connect(file)) as connection, connection:
        yield connection


def kept_bytes(store: Store) -> int:
    with open_database(store.path / FILE_NAME) as connection:
        return int(connection.execute("SELECT total(size) FROM kept").fetchone()[0])
