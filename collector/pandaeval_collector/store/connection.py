"""Opens the store's file, and detects, records and moves damaged files.

A start checks large files only after SQLite reported damage.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pandaeval_collector.store.schema import TABLES, VERSION, StoreVersionError, version_of

_log = logging.getLogger(__name__)
Durability = Literal["full", "normal", "off"]

FILE_NAME = "pandaeval.db"
PAGE_BYTES = 16384
_CHECKPOINT_PAGES = 1000
"""Pages of the log before a checkpoint (16 MB), which delays requests by 10 to 20 ms. Larger logs save little."""
_SMALL_BYTES = 64 << 20  # a second on a disk that reads 64 MB/s
_PAGE_BYTES_AT = 16  # in the file's header, two bytes
_OTHERS = 0o007  # mode bits of users who are neither owner nor group
_PRIMARY = 0xFF  # mask of SQLite's primary result codes; higher bits add details
_STEPS = 400_000
"""SQLite steps between two clock checks, about 10 ms. A check can wait 5 ms for the interpreter lock."""


def create(file: Path, durability: Durability) -> bool:
    """Create and check the private file. Returns whether a damaged file was moved aside."""
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    elif file.stat().st_mode & _OTHERS:  # a restored backup; SQLite gives its log the same mode
        with contextlib.suppress(PermissionError):
            file.chmod(0o600)
    try:
        check_size(file)
        _prepare(file, durability)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise
        put_aside(file, error)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        _prepare(file, durability)
        return True
    return False


def connect(file: Path, durability: Durability, read_only: bool = False) -> sqlite3.Connection:
    """Open an autocommit connection to the existing file, for one thread.

    Raises :class:`pandaeval_collector.store.schema.StoreVersionError`.
    """
    existing = f"{file.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        existing, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.text_factory = _text
    try:
        connection.execute("PRAGMA busy_timeout = 10000")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute(f"PRAGMA synchronous = {durability.upper()}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {256 << 20}")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA secure_delete = ON")  # deleted content is not left in free pages
        version_of(connection, file)
    except (sqlite3.Error, StoreVersionError):  # damage can appear here
        connection.close()
        raise
    return connection


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of pages in use, which ``store.max_bytes`` limits."""
    used, free = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count"))
    return (used - free) * PAGE_BYTES


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _prepare(file: Path, durability: Durability) -> None:
    connection = connect(file, durability)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if not connection.execute("PRAGMA auto_vacuum").fetchone()[0]:  # setting it would write
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        if not version_of(connection, file):
            connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        look_through(connection, file)
    finally:
        connection.close()


class DamagedFileError(sqlite3.DatabaseError):
    """The pages of the store's file are damaged."""


def note_damage(file: Path, error: BaseException) -> bool:
    """Return whether ``error`` reports damage; if so, the next start checks the file."""
    if getattr(error, "sqlite_errorcode", 0) & _PRIMARY not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return False
    note = _note(file)
    if not note.exists():
        _log.error("the store is damaged (%s): restart the collector, which puts it aside and begins a new one", error)
        with contextlib.suppress(OSError):  # the disk can also be full; the next error notes the damage
            note.write_text(f"{error}\n")
    return True


def look_through(connection: sqlite3.Connection, file: Path) -> None:
    """Check the file if it is small or noted as damaged. Raises :class:`DamagedFileError`."""
    is_suspected = _note(file).exists()
    if not is_suspected and file.stat().st_size > _SMALL_BYTES:
        return
    if is_suspected:
        _log.warning("checking the store (%d MiB), because damage was found", file.stat().st_size >> 20)
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DamagedFileError(found)
    _note(file).unlink(missing_ok=True)


def check_size(file: Path) -> None:
    """Raise :class:`DamagedFileError` for a partial page. Skipped if a log exists. No connection may be open."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        return
    with file.open("rb") as content:
        head = content.read(_PAGE_BYTES_AT + 2)
    page_bytes = int.from_bytes(head[_PAGE_BYTES_AT:], "big")
    if page_bytes > 1 and file.stat().st_size % page_bytes:  # 1 stands for 65536, which we never use
        raise DamagedFileError("the file ends within a page")


def put_aside(file: Path, error: Exception) -> None:
    """Rename a damaged file and its log, and remove the note."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(file.with_name(f"{file.name}.damaged-{stamp}{suffix}"))
    _note(file).unlink(missing_ok=True)
    _log.error("the store was damaged (%s); it was put aside as %s.damaged-%s and a new one begun", error, file, stamp)


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.suspected")


class TooSlowError(Exception):
    """A query exceeded the time limit and must be narrowed down."""


class Connections:
    def __init__(self, path: Path, limit_s: float | None = None) -> None:
        """``limit_s``: most seconds of a snapshot's reads; ``None``: no limit."""
        self._file, self._limit_s = path / FILE_NAME, limit_s
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def own(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._file, "off", read_only=True)
            self._open.append(connection)
        return connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read from a snapshot, taken at the first read in the block. Raises :class:`TooSlowError`."""
        connection, limit_s = self.own(), self._limit_s
        if limit_s is not None:
            until = time.monotonic() + limit_s
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        connection.rollback()  # ends a snapshot after a failed COMMIT
        connection.execute("BEGIN")
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            if "interrupted" in str(error):
                raise TooSlowError(f"this took longer than {limit_s:g} s: filter by time or agent") from error
            note_damage(self._file, error)
            raise
        finally:
            connection.set_progress_handler(None, 0)
            connection.rollback()

    @contextlib.contextmanager
    def scan(self) -> Iterator[sqlite3.Connection]:
        """Open a separate connection for a long read from one snapshot."""
        with contextlib.closing(connect(self._file, "off", read_only=True)) as connection:
            yield connection
