"""Opens the store's file: creates or migrates it, sets its durability, and puts a damaged file aside."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Literal

from pandaeval_collector.store.damage import check_size, look_through, put_aside
from pandaeval_collector.store.log import put_foreign_log_aside
from pandaeval_collector.store.schema import migrate

Durability = Literal["full", "normal", "off"]

FILE_NAME = "pandaeval.db"
PAGE_BYTES = 16384
_CHECKPOINT_PAGES = 1000
"""The commit that fills the log so far copies it into the file, and requests wait for that: 10 to 20 ms at 16 MB. Four
times as many pages take four times as long, and save three bytes in a hundred."""


def create(file: Path, durability: Durability) -> bool:
    """Makes the file ready to be opened: created privately, migrated, checked. Returns whether a damaged file had to
    be put aside (it is kept next to the new one, never deleted)."""
    damaged = False
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        check_size(file)
        put_foreign_log_aside(file)
        _prepare(file, durability)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise
        damaged = True
        put_aside(file, error)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        _prepare(file, durability)
    return damaged


def connect(file: Path, durability: Durability, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are written out), usable from one thread. The file must be there:
    a new one in the place of one that was removed would be taken for the store."""
    existing = f"{file.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        existing, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _set_up(connection, durability, read_only)
    except sqlite3.Error:  # a damaged file may show itself here
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, durability: Durability, read_only: bool) -> None:
    connection.execute("PRAGMA busy_timeout = 10000")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        return
    connection.execute(f"PRAGMA synchronous = {durability.upper()}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {256 << 20}")
    connection.execute("PRAGMA temp_store = MEMORY")


def _prepare(file: Path, durability: Durability) -> None:
    connection = connect(file, durability)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if not connection.execute("PRAGMA auto_vacuum").fetchone()[0]:  # to set it is a write
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection)
        look_through(connection, file)
    finally:
        connection.close()
