"""Opens user-supplied paths. Rejects pipes and devices, which could block forever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from pandaeval_collector.base.errors import UserError

_OWN = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""What the shell opened for a command, such as ``<(zcat FILE)``."""
_NO_FILE = "is a pipe or a device and no file; write what it gives into a file first"


class TooLongError(OSError):
    """A file is too long."""


def open_given(path: Path | str) -> BinaryIO:
    """Open a file for reading. Raises ``OSError`` with a sentence, also for special files except the shell's pipes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opens a pipe without a writer
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            if not (stat.S_ISFIFO(kind) and str(path).startswith(_OWN)):
                raise OSError(errno.EINVAL, _NO_FILE, str(path))
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_given(path: Path | str, most: int = 256 << 20) -> bytes:
    """Return a file's content. Raises ``OSError``, and :class:`TooLongError` above ``most`` bytes."""
    with open_given(path) as file:
        held = file.read(most + 1)
    if len(held) > most:
        raise TooLongError(errno.EFBIG, f"holds more than {most >> 20} MiB; is it the right file?", str(path))
    return held


def read_text(path: Path, cure: str, most: int = 256 << 20) -> str:
    """Return the text of a file in UTF-8. Raises ``UserError``, with ``cure`` if the file cannot be read."""
    try:
        return read_given(path, most).decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        byte = f"byte {error.start}"
        raise UserError(f"{path} is not UTF-8 ({byte}): save it as UTF-8, in Excel as “CSV UTF-8”") from error
