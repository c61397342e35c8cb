"""Reads of a store's file that give up after a time limit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pandaeval_collector.store.connection import FILE_NAME, connect

_STEPS = 400_000
"""Steps of SQLite's machine between two looks at the clock: some ten milliseconds. For each look the interpreter is
waited for, which the line may hold for five."""


class TooSlowError(Exception):
    """A question took longer than the time limit: it has to be narrowed down."""


class TimedReads:
    """Read-only connections to one store's file. Safe from any thread; each thread that reads has a connection."""

    def __init__(self, path: Path, limit_s: float) -> None:
        """``path``: the data directory. ``limit_s``: how long a read may take."""
        self._file, self._limit_s = path / FILE_NAME, limit_s
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._opening = threading.Lock()

    def close(self) -> None:
        """Closes the connections of all threads."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection, for reads without the time limit."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._file, "off", read_only=True)
            with self._opening:
                self._open.append(connection)
        return connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The calling thread's connection, within a snapshot and the time limit. Raises :class:`TooSlowError`."""
        connection = self.connection()
        until = time.monotonic() + self._limit_s
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        connection.rollback()
        connection.execute("BEGIN")
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise TooSlowError(
                    f"this took longer than {self._limit_s:g} s: narrow it down by time or agent"
                ) from error
            raise
        finally:
            connection.set_progress_handler(None, 0)
            connection.rollback()
