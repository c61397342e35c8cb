"""Opens files that people name, results as JSON lines among them. A pipe that nobody writes to and a device without
end would be read for ever."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line

_OWN = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""What the shell opened for a command, such as ``<(zcat FILE)``."""
_NO_FILE = "is a pipe or a device and no file; write what it gives into a file first"


class TooLongError(OSError):
    """A file holds more than it may."""


def open_given(path: Path | str) -> BinaryIO:
    """Opens a file to be read. Raises ``OSError`` with a sentence, also for what is no file and was not opened for this
    process by the shell."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # opens a pipe without a writer
    descriptor = os.open(path, flags)
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
    """Returns the content of a file of at most ``most`` bytes, and reads no more: it may be a device, or grow. Raises
    ``OSError`` as :func:`open_given` does, and :class:`TooLongError`."""
    with open_given(path) as file:
        held = file.read(most + 1)
    if len(held) > most:
        raise TooLongError(errno.EFBIG, f"holds more than {most >> 20} MiB; is it the right file?", str(path))
    return held


# Results as JSON lines, as ``pandaeval evaluate --format json`` and the jsonl exporter write them, read back.
STDIN = "-"
_MOST_OF_A_LINE = 64 << 20
_TEXTS = ("metric", "level", "outcome")


def result_lines(path: Path | str) -> Iterator[dict[str, Any]]:
    """Yields each result of a file, ``-`` for standard input, in order; each has the texts ``metric``, ``level`` and
    ``outcome``, and a number as its ``revision`` if it has one. Raises ``UserError`` where a line is no result."""
    name = "standard input" if str(path) == STDIN else str(path)
    try:
        if str(path) == STDIN:
            yield from results_of(sys.stdin, name)
        else:
            with io.TextIOWrapper(open_given(path), encoding="utf-8-sig") as file:
                yield from results_of(file, name)
    except OSError as error:
        cure = "name what `pandaeval evaluate --format json -o FILE` wrote"
        raise UserError(f"{name} cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8: results are JSON lines, as `evaluate --format json` writes") from error


def results_of(file: TextIO, name: str) -> Iterator[dict[str, Any]]:
    """Reads results from lines of text; ``name``: what to call their source. A line that is too long comes in parts,
    which are no results."""
    for number, text in enumerate(iter(lambda: file.readline(_MOST_OF_A_LINE), ""), 1):
        if not text.strip():
            continue
        try:
            result = orjson.loads(text)
            texts = isinstance(result, dict) and all(isinstance(result.get(key), str) for key in _TEXTS)
            if not texts or not isinstance(result.get("revision"), int | None):
                raise ValueError
        except ValueError:
            cure = "`pandaeval evaluate --format json` writes such lines"
            raise UserError(one_printable_line(f"{name}, line {number}: no result; {cure}")) from None
        yield result
