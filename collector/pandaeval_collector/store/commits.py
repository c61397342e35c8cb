"""What goes with every commit: its number, inside and beside the store, and a look whether the store is still there."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import uuid
from pathlib import Path

from pandaeval_collector.store.mark import Mark
from pandaeval_collector.store.place import Place

_log = logging.getLogger(__name__)

_KEY = "store_id"
_WRAP = 1 << 32


class Commits:
    """Numbers the commits of one store. :meth:`seal` and :meth:`confirm` run on the writer's thread.

    The number is SQLite's ``application_id``: it lies on the first page of the file, which most commits write anyway.
    ``missing``: what a store lacks that was noted as committed, as a clause; empty where nothing is.
    """

    def __init__(self, connection: sqlite3.Connection, directory: Path, place: Place, was_damaged: bool) -> None:
        """``connection``: nothing else writes yet. ``was_damaged``: that this is a new store is known and was said."""
        self._place, self._mark = place, Mark(directory)
        self._number = number_of(connection)
        self.missing = ""
        noted, store = self._mark.read(), _id_of(connection)
        if noted is not None and not was_damaged:
            self.missing = noted.missing(store, self._number)
            if self.missing:
                _log.error(
                    "acknowledged data is missing in %s: %s; what is there is served. It was damaged, or an older copy "
                    "was put in its place (docs/operations.md#missing-commits)",
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
        self._mark.write(self._store, self._number)
        if not store:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, new))

    def seal(self, connection: sqlite3.Connection) -> None:
        """The last thing in a transaction. Raises :class:`StoreGoneError`."""
        self._place.require()
        following = (self._number + 1) % _WRAP
        connection.execute(f"PRAGMA application_id = {following - (following >> 31) * _WRAP}")

    def confirm(self) -> None:
        """The first thing after a commit, before anybody is told. Raises :class:`StoreGoneError`: then it happened in
        a file that is not the store any more."""
        self._number = (self._number + 1) % _WRAP
        self._place.check()
        self._mark.write(self._store, self._number)

    def look(self) -> None:
        """Sees that the note is where the next start looks for it. Any thread."""
        if self._mark.look():
            self._mark.write(self._store, self._number)

    def close(self) -> None:
        self._mark.close()


def number_of(connection: sqlite3.Connection) -> int:
    """The number of the last commit that this connection sees."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0]) % _WRAP


def _id_of(connection: sqlite3.Connection) -> bytes:
    row = connection.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (_KEY,)).fetchone()
    return b"" if row is None else _digest(row[0])  # a damaged one is another one


def _digest(store_id: bytes) -> bytes:
    return hashlib.blake2b(store_id, digest_size=16).digest()
