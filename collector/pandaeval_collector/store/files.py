"""Checks whether the store's files are still those at their paths.

A file that was removed while it is open takes every write and ends with the process. So no caller is told that its work
is committed before the file was seen in its place after the commit.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from pandaeval_collector.store.directory import Directory, is_at


class StoreGoneError(sqlite3.OperationalError):
    """What is open is not what lies at the store's path; nothing more is accepted until the collector is restarted."""


class StoreFiles:
    """The open files of one store: the file itself, its log and the index of that. Any thread.

    ``gone``: why they are not in their place, empty while they are. It never becomes empty again: what was committed in
    between may be elsewhere.
    """

    def __init__(self, directory: Directory, file: Path) -> None:
        """``file``: with a connection open that has read from it, so that its log is there too."""
        self.file, self.gone = file, ""
        self._directory = directory
        # SQLite's locks on a file end when any descriptor of it is closed; one that only names it does no harm.
        self._handle = os.open(file, getattr(os, "O_PATH", os.O_RDONLY))
        self._looked_ns = directory.changed_ns()
        self._files = [(path, os.stat(path)) for path in (str(file), f"{file}-wal", f"{file}-shm")]

    def require(self) -> None:
        """Raises :class:`StoreGoneError` if an earlier check found files missing. Costs nothing."""
        if self.gone:
            raise StoreGoneError(self.gone)

    def check(self) -> None:
        """Checks the main file after a commit, in a few microseconds. Raises :class:`StoreGoneError`. It notices a file
        that is removed or replaced, because its directory changes. Moving or covering the whole directory loses
        nothing; :meth:`look` notices that."""
        changed_ns = self._directory.changed_ns()
        if changed_ns != self._looked_ns:
            self._compare()
            self._looked_ns = changed_ns
        self.require()

    def look(self) -> str:
        """Checks every file, the directory and its locks; returns ``gone``."""
        self._compare()
        if not self.gone:
            self.gone = self._directory.look()
        return self.gone

    @property
    def has_file(self) -> bool:
        """Whether at least the main file is where it was."""
        return is_at(*self._files[0])

    @property
    def is_deleted(self) -> bool:
        """Whether the open file has no name left: then its content ends with the process."""
        return os.fstat(self._handle).st_nlink == 0

    @property
    def whereabouts(self) -> str:
        """Where the open file lies now, as far as the system tells."""
        try:
            return os.readlink(f"/proc/self/fd/{self._handle}")
        except OSError:
            return f"inode {os.fstat(self._handle).st_ino}"

    def close(self) -> None:
        """Closes the files. To be called after all connections are closed."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def _compare(self) -> None:
        for path, opened in self._files:
            if not self.gone and not is_at(path, opened):
                self.gone = f"{os.path.basename(path)} was moved, removed or replaced while it was in use"
