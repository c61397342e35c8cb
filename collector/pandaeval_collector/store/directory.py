"""The data directory of a store, locked by one collector."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
from pathlib import Path

_LOCK_NAME = "lock"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_LEAST_BYTES = 1 << 20


class StoreBusyError(RuntimeError):
    """Another collector uses this data directory."""


class Directory:
    """A data directory that no other collector can open. It is created if need be, private to this user.

    Both the directory and a file in it are locked: some file systems lock no directories, and the file may be removed.
    """

    def __init__(self, path: Path) -> None:
        """Create and lock the directory. Raises :class:`StoreBusyError`."""
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._handles = [os.open(path, os.O_RDONLY | os.O_DIRECTORY)]
        try:
            self._handles.append(os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600))
            for handle in self._handles:
                _lock(handle)
        except BlockingIOError:
            self.close()
            raise StoreBusyError(
                f"{path} is in use by another collector: stop it, or give this one a data directory of its own "
                "(store.path or PANDAEVAL_DATA)"
            ) from None
        except BaseException:
            self.close()
            raise

    def sync(self) -> None:
        """Sync the directory: the names of files that were created or renamed survive a power cut."""
        os.fsync(self._handles[0])

    def close(self) -> None:
        """Unlock the directory. Safe to call twice."""
        while self._handles:
            os.close(self._handles.pop())


def _lock(handle: int) -> None:
    """Lock a file or directory, where the file system can. Raises ``BlockingIOError``."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def has_no_room(path: Path, error: OSError | sqlite3.Error) -> bool:
    """Return whether a file of the store could not be opened or written because the disk is full. SQLite reports the
    shared memory file as one that cannot be opened then, so the free space is measured too."""
    if getattr(error, "errno", None) in _NO_ROOM:
        return True
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return True
    return path.exists() and shutil.disk_usage(path).free < _LEAST_BYTES
