"""How the store's file is opened: durability, one owner, and what happens when it is damaged."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import IO, Literal

from pandaeval_collector.store.damage import look_through, put_aside
from pandaeval_collector.store.schema import migrate

Durability = Literal["full", "normal", "off"]

FILE_NAME = "pandaeval.db"
PAGE_BYTES = 16384
_CHECKPOINT_PAGES = 1000
"""The commit that fills the log so far copies it into the file, and requests wait for that: 10 to 20 ms at 16 MB. Four
times as many pages take four times as long, and save three bytes in a hundred."""


class StoreBusyError(RuntimeError):
    """Another collector uses this data directory."""


def open_directory(path: Path) -> tuple[Path, IO[str]]:
    """The store's file below ``path`` and the lock that makes us its only owner; both private to this user."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (path / "lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StoreBusyError(
            f"{path} is in use by another collector: stop it, or give this one a data directory of its own "
            "(store.path or PANDAEVAL_DATA)"
        ) from error
    return path / FILE_NAME, lock


def create(file: Path, durability: Durability) -> bool:
    """Makes the file ready to be opened: created privately, migrated, checked. Returns whether a damaged file had to
    be put aside (it is kept next to the new one, never deleted)."""
    damaged = False
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        _prepare(file, durability)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise
        damaged = True
        put_aside(file, error)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        _prepare(file, durability)
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the file's own name must survive a power cut too
    finally:
        os.close(directory)
    return damaged


def connect(file: Path, durability: Durability, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are written out), usable from one thread."""
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=256)
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
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection)
        look_through(connection, file)
    finally:
        connection.close()
