"""The data directory, locked by one collector."""

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
    """A locked, private data directory.

    Also locks a file, because some file systems lock no directories. Raises :class:`StoreBusyError`.
    """

    def __init__(self, path: Path) -> None:
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
        os.fsync(self._handles[0])

    def close(self) -> None:
        """Unlock the directory. Idempotent."""
        while self._handles:
            os.close(self._handles.pop())


def _lock(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def has_no_room(path: Path, error: OSError | sqlite3.Error) -> bool:
    """Return whether an error means a full disk. Measures free space, because SQLite can report another error."""
    if getattr(error, "errno", None) in _NO_ROOM:
        return True
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return True
    return path.exists() and shutil.disk_usage(path).free < _LEAST_BYTES
