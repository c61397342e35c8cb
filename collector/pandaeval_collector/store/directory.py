"""The data directory of a store: locked by one collector, for as long as it is the directory at its path; and what
becomes of a store whose files were taken away while it was open."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

_log = logging.getLogger(__name__)

_LOCK_NAME = "lock"
_STEP_PAGES = 1024
_SPARE_BYTES = 16 << 20
_LEAST_BYTES = 1 << 20
"""Room that a copy leaves on the disk."""
_MOVED = "the data directory was moved, removed or replaced"


class StoreBusyError(RuntimeError):
    """Another collector uses this data directory."""


class Directory:
    """A data directory, created if need be and private to this user, that no other collector can open meanwhile. It is
    locked twice: anybody who tidies up can remove the file ``lock``, but nobody can remove the directory without all
    that is in it. Any thread may look; one closes."""

    def __init__(self, path: Path) -> None:
        """Creates the directory if need be, and locks it. Raises :class:`StoreBusyError`."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._lock = -1
        try:
            if not _locked(self._handle) or not self._lock_file():
                raise StoreBusyError(
                    f"{path} is in use by another collector: stop it, or give this one a data directory of its own "
                    "(store.path or PANDAEVAL_DATA)"
                )
        except BaseException:
            self.close()
            raise

    def look(self) -> str:
        """Returns why this is not the directory at its path any more, or why another collector may write to it; empty
        while neither holds. Puts a lock file back that was removed."""
        if not is_at(self.path, os.fstat(self._handle)):
            return _MOVED
        if is_at(self.path / _LOCK_NAME, os.fstat(self._lock)):
            return ""
        try:
            if not self._lock_file():
                return "another collector has locked the data directory"
        except OSError as error:
            if not is_at(self.path, os.fstat(self._handle)):  # the directory went just now
                return _MOVED
            _log.warning("%s was removed and cannot be put back: %s", self.path / _LOCK_NAME, error.strerror)
            return ""
        _log.warning("%s was removed while the collector runs; it is put back", self.path / _LOCK_NAME)
        return ""

    def changed_ns(self) -> int:
        """Returns when a name in the directory last changed, by the file system's clock. Takes two microseconds."""
        return os.fstat(self._handle).st_mtime_ns

    def sync(self) -> None:
        """Syncs the directory: the names of files that were created or renamed survive a power cut."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Unlocks the directory. Safe to call twice."""
        for handle in (self._lock, self._handle):
            if handle >= 0:
                os.close(handle)
        self._lock = self._handle = -1

    def _lock_file(self) -> bool:
        """Locks the file ``lock``, the one that is there or a new one; returns whether no other process holds it."""
        handle = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = handle
        return True


def has_no_room(path: Path, error: OSError | sqlite3.Error) -> bool:
    """Returns whether a file of the store could not be opened or written because the disk is full. SQLite does not
    always say so: of its file in shared memory it says that it cannot be opened."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return True
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return True
    return shutil.disk_usage(path).free < _LEAST_BYTES if path.exists() else False


def is_at(path: str | Path, opened: os.stat_result) -> bool:
    """Returns whether an open file is the one at the path. A path that cannot be looked at just now counts as the same:
    what is written is not lost by that."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return found.st_ino == opened.st_ino and found.st_dev == opened.st_dev


def _locked(handle: int) -> bool:
    with contextlib.suppress(OSError):  # a file system that locks no directories; there the lock file has to do
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# Checks whether the store's files are still those at their paths.
#
# A file that was removed while it is open takes every write and ends with the process. So no caller is told that its
# work is committed before the file was seen in its place after the commit.
class StoreGoneError(sqlite3.OperationalError):
    """The store's files were taken away or replaced; nothing more is accepted until the collector is restarted."""


class StoreFiles:
    """The open files of one store: the file itself, its log and the index of that. Any thread.

    ``gone``: why they are not in their place, empty while they are. It never becomes empty again: what was committed in
    between may be elsewhere.
    """

    def __init__(self, directory: Directory, file: Path) -> None:
        """``file``: the main file. A connection to it is open and has read, so that its log exists too."""
        self.file, self.gone = file, ""
        self._directory = directory
        # SQLite's locks on a file end when any descriptor of it is closed, except for one that only names it (O_PATH).
        self._handle = os.open(file, getattr(os, "O_PATH", os.O_RDONLY))
        self._looked_ns = directory.changed_ns()
        self._files = [(path, os.stat(path)) for path in (str(file), f"{file}-wal", f"{file}-shm")]

    def require(self) -> None:
        """Raises :class:`StoreGoneError` if an earlier check found files missing. Costs nothing."""
        if self.gone:
            raise StoreGoneError(self.gone)

    def check(self) -> None:
        """Checks the main file after a commit, in a few microseconds. Raises :class:`StoreGoneError`. This notices a
        file that is removed or replaced, because its directory changes. Moving or covering the whole directory loses
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
