"""Saves the content of a store whose files were taken away while it was open, before the process closes them."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from pandaeval_collector.store.directory import Directory, StoreBusyError, StoreFiles

_log = logging.getLogger(__name__)

_STEP_PAGES = 1024
_SPARE_BYTES = 16 << 20
"""Room that a copy leaves on the disk."""


def rescue(connection: sqlite3.Connection, place: StoreFiles, directory: Directory) -> Directory | None:
    """Saves what the open files hold, where it would end with the process, and logs what came of it. ``connection``
    was opened when all was in its place. Returns a directory that had to be made anew and must stay locked.

    Raises ``OSError`` and ``sqlite3.Error`` where that is not possible just now, for want of room, say.
    """
    if not place.is_deleted:
        # The log may lie elsewhere, or nowhere; SQLite does not empty it for a moved file.
        busy, in_log, copied = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        if busy or in_log != copied:
            raise sqlite3.OperationalError("the log is in use and could not be copied into the file")
    if place.has_file:
        _log.error("what the log of %s held is in the file: nothing is lost, restart the collector", place.file)
        return None
    if not place.is_deleted:
        _log.error(
            "the store is whole and lies at %s: stop the collector, put it back as %s, and start",
            place.whereabouts,
            place.file,
        )
        return None
    made = None
    if directory.look():
        with contextlib.suppress(StoreBusyError):  # another collector has begun a store of its own there
            made = Directory(directory.path)
    _save(connection, place.file)
    return made


def _save(connection: sqlite3.Connection, file: Path) -> None:
    aside = file.with_name(f"{file.name}.rescued-{time.strftime('%Y%m%dT%H%M%S')}")
    _copy(connection, aside)
    try:
        os.link(aside, file)  # and not rename: what lies there by now is not overwritten
    except OSError as error:
        _log.error(
            "what was in the store is saved as %s, and could not be put at its path (%s). To go on with what was "
            "saved: stop the collector, put it in the place of %s without -wal and -shm, and start",
            aside,
            error.strerror,
            file,
        )
    else:
        aside.unlink()
        _log.error("what was in the store is saved and at %s again: nothing is lost, restart the collector", file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy(connection: sqlite3.Connection, to: Path) -> None:
    pages, page_bytes = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    needed, free = pages * page_bytes, shutil.disk_usage(to.parent).free
    if free < needed + _SPARE_BYTES:
        sizes = f"{needed >> 20} MiB have to be saved and {free >> 20} MiB are free"
        raise OSError(errno.ENOSPC, sizes, str(to.parent))
    _log.error("saving %d MiB of the store to %s", needed >> 20, to)
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(sqlite3.connect(to)) as copy:
            connection.backup(copy, pages=_STEP_PAGES, sleep=0.0)
    except BaseException:
        to.unlink(missing_ok=True)
        raise
