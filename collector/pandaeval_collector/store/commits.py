"""Numbers every commit, inside the store and in a note beside it, and checks after each that the store's file is in
place."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import uuid
from pathlib import Path

from pandaeval_collector.store.files import StoreFiles
from pandaeval_collector.store.mark import LossMark
from pandaeval_collector.store.writer import WriteHooks

_log = logging.getLogger(__name__)

_KEY, _NEWEST = "store_id", "newest_chunk"
_NUMBER_EVERY_S = 0.1
_WRAP = 1 << 32


class Commits(WriteHooks):
    """Keeps count of what is committed in one store.

    Two counts say how far a store got. Chunks have ids that grow. For all else commits are numbered, in SQLite's
    ``application_id``: it lies on the first page of the file. A commit of nothing but chunks would have to write that
    page for it, so of those only ten a second get a number.

    ``missing``: what a store lacks that was noted as committed, as a clause; empty where nothing is.
    """

    def __init__(self, connection: sqlite3.Connection, directory: Path, place: StoreFiles, was_damaged: bool) -> None:
        """``connection``: nothing else writes yet. ``was_damaged``: that this is a new store is known and was said."""
        self._place, self._mark = place, LossMark(directory)
        self._number, self._chunk = number_of(connection), newest_chunk(connection)
        self._taken = 0
        self._is_numbered, self._number_at = False, 0.0
        self.missing = ""
        noted, store = self._mark.read(), _id_of(connection)
        if noted is not None and not was_damaged:
            self.missing = noted.missing(store, self._number, self._chunk)
            if self.missing:
                _log.error(
                    "acknowledged data is missing in %s: %s; what is there is served. It was damaged, or an older copy "
                    "was put in its place (docs/operations.md#missing-data)",
                    place.file,
                    self.missing,
                )
        elif noted is None and store:
            _log.warning(
                "there is no note of the last commit beside %s: whether all are there is not known", place.file
            )
        # Noted before the store has its id: after a crash in between nothing is there, and nothing is missed.
        new = str(uuid.uuid4())
        self._store = store or _digest(new.encode())
        self._mark.write(self._store, self._number, self._chunk)
        if not store:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, new))

    def took(self, chunk: int) -> None:
        """Notes that the running transaction inserted a chunk. On the writer's thread."""
        self._taken = max(self._taken, chunk)

    def seal(self, connection: sqlite3.Connection) -> None:
        """Numbers the running transaction. Raises :class:`StoreGoneError`."""
        self._place.require()
        self._is_numbered = not self._taken or time.monotonic() >= self._number_at
        if self._is_numbered:
            following = (self._number + 1) % _WRAP
            connection.execute(f"PRAGMA application_id = {following - (following >> 31) * _WRAP}")

    def undo(self) -> None:
        self._taken = 0

    def confirm(self) -> None:
        """Checks the store after a commit and updates the note. Raises :class:`StoreGoneError` if the commit went into
        a file that is not at the store's path any more."""
        self._chunk, self._taken = max(self._chunk, self._taken), 0
        if self._is_numbered:
            self._number = (self._number + 1) % _WRAP
            self._number_at = time.monotonic() + _NUMBER_EVERY_S
        self._place.check()
        self._mark.write(self._store, self._number, self._chunk)

    def look(self) -> None:
        """Checks that the note is at its path. Any thread."""
        if self._mark.look():
            self._mark.write(self._store, self._number, self._chunk)

    def close(self) -> None:
        self._mark.close()


def number_of(connection: sqlite3.Connection) -> int:
    """The number of the last commit that this connection sees."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0]) % _WRAP


def newest_chunk(connection: sqlite3.Connection) -> int:
    """The id of the newest chunk that there ever was, as far as this connection sees; 0 before the first."""
    (there,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
    kept = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", (_NEWEST,)).fetchone()
    return max(int(there), 0 if kept is None else int(kept[0]))


def keep_newest(connection: sqlite3.Connection) -> None:
    """Before chunks are deleted: that there was the newest of them stays known."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NEWEST, str(newest_chunk(connection))))


def _id_of(connection: sqlite3.Connection) -> bytes:
    row = connection.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (_KEY,)).fetchone()
    return b"" if row is None else _digest(row[0])  # a damaged one is another one


def _digest(store_id: bytes) -> bytes:
    return hashlib.blake2b(store_id, digest_size=16).digest()
