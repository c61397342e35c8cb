"""SQLite files opened beside the collector."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def open_database(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits at the end of the block, as sqlite3's own blocks do, and closes too, as they do not."""
    with closing(sqlite3.connect(file)) as connection, connection:
        yield connection
