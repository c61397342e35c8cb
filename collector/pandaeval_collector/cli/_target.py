"""Where a command writes to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._terminal import write_json


class OutputFile:
    """The file to write to, or standard output (which is not closed)."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> TextIO:
        if self._path is None:
            return sys.stdout
        try:
            self._file = self._path.open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"--output {self._path}: {error.strerror or error}; name a file in a folder that is there"
            ) from error
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def write_json_line(target: TextIO, line: bytes) -> None:
    """A line of JSON to what :class:`OutputFile` gave: a file gets it as it is, a terminal with unsafe characters as
    JSON escapes them."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")
