"""Finds out whether a write-ahead log beside the store's file belongs to that file.

SQLite applies whatever log lies there. Its checks do not notice a file that is older than the log, or a log that ends
before what was copied from it into the file: both would mix pages of different times. The number of each commit on page
1 (:mod:`commits`) shows it.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import time
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from pandaeval_collector.store.commits import number_of
from pandaeval_collector.store.mark import ahead

_log = logging.getLogger(__name__)

_HEAD, _FRAME = 32, 24
_NUMBER_AT = 68
_NUMBER = struct.Struct(">I")
_FILE_HEAD = 100


def put_foreign_log_aside(file: Path) -> bool:
    """Renames a log that would spoil the file, or that SQLite would delete because the file is empty; whether there was
    one. Nothing is open. Raises ``sqlite3.DatabaseError`` for what is no database."""
    log = file.with_name(f"{file.name}-wal")
    if not log.exists() or log.stat().st_size <= _HEAD:
        return False
    why = _foreign(file, log)
    if why:
        aside = log.with_name(f"{log.name}.aside-{time.strftime('%Y%m%dT%H%M%S')}")
        log.rename(aside)
        file.with_name(f"{file.name}-shm").unlink(missing_ok=True)
        _log.error("the store's log does not belong to its file (%s); it was put aside as %s", why, aside)
    return bool(why)


def _foreign(file: Path, log: Path) -> str:
    with file.open("rb") as content:
        head = content.read(_FILE_HEAD)
    if len(head) < _FILE_HEAD:
        return "the file is empty"
    (held,) = _NUMBER.unpack_from(head, _NUMBER_AT)
    with log.open("rb") as content:
        first = _first_number(content)
    if first is None:
        return ""
    if ahead(first, held) > 1:
        return f"the file ends with commit {held}, the log begins with {first}"
    # Opened read only: a connection that may write would copy the log into the file when it is closed.
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        reaches = number_of(connection)
    return f"the file has commit {held}, the log ends with {reaches}" if ahead(held, reaches) > 0 else ""


def _first_number(log: BinaryIO) -> int | None:
    """The number of the first commit that is in a log; ``None`` where no frame is of page 1."""
    head = log.read(_HEAD)
    page_bytes, salt = int.from_bytes(head[8:12], "big"), head[16:24]
    while len(frame := log.read(_FRAME)) == _FRAME and frame[8:16] == salt:
        if frame[:4] == b"\0\0\0\1":
            page = log.read(_FILE_HEAD)
            return _NUMBER.unpack_from(page, _NUMBER_AT)[0] if len(page) == _FILE_HEAD else None
        log.seek(page_bytes, 1)
    return None
