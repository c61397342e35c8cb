"""Finds damage to the store's file, notes it for the next start, and puts a damaged file aside.

To check a file of some GiB on a cold disk takes minutes, in which nothing could be accepted. So a start checks only a
small file; a large one is checked when SQLite met damage in it, which is noted beside it.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from pathlib import Path

_log = logging.getLogger(__name__)
_SMALL_BYTES = 64 << 20  # a second on a disk that reads 64 MB/s
_PAGE_BYTES_AT = 16  # in the file's header, two bytes
_PRIMARY = 0xFF  # mask of SQLite's primary result codes; higher bits add details


class DamagedFileError(sqlite3.DatabaseError):
    """The pages of the store's file are damaged."""


def note_damage(file: Path, error: BaseException) -> bool:
    """Returns whether ``error`` means that the file is damaged; if so, notes it, and the next start checks the file."""
    if getattr(error, "sqlite_errorcode", 0) & _PRIMARY not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return False
    note = _note(file)
    if not note.exists():
        _log.error("the store is damaged (%s): restart the collector, which puts it aside and begins a new one", error)
        with contextlib.suppress(OSError):  # the disk may be full, too; the next error notes the damage
            note.write_text(f"{error}\n")
    return True


def look_through(connection: sqlite3.Connection, file: Path) -> None:
    """Checks the whole file if it is small or noted as damaged. Raises :class:`DamagedFileError`."""
    is_suspected = _note(file).exists()
    if not is_suspected and file.stat().st_size > _SMALL_BYTES:
        return
    if is_suspected:
        _log.warning("looking through the store (%d MiB), in which damage was met", file.stat().st_size >> 20)
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DamagedFileError(found)
    _note(file).unlink(missing_ok=True)


def check_size(file: Path) -> None:
    """Raises :class:`DamagedFileError` if the file ends within a page, which SQLite would fill up with zeros. Checks
    nothing while there is a log, which holds that page too. No connection may be open."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        return
    with file.open("rb") as content:
        head = content.read(_PAGE_BYTES_AT + 2)
    page_bytes = int.from_bytes(head[_PAGE_BYTES_AT:], "big")
    if page_bytes > 1 and file.stat().st_size % page_bytes:  # 1 stands for 65536, which we never use
        raise DamagedFileError("the file ends within a page")


def put_aside(file: Path, error: Exception) -> None:
    """Renames a damaged file and its log, which are not deleted, and removes the note of the damage."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(file.with_name(f"{file.name}.damaged-{stamp}{suffix}"))
    _note(file).unlink(missing_ok=True)
    _log.error("the store was damaged (%s); it was put aside as %s.damaged-%s and a new one begun", error, file, stamp)


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.suspected")
