"""Where commands write: a file or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._terminal import write_json


@contextmanager
def output_file(path: Path | None) -> Iterator[TextIO]:
    """Opens the file to write to, or yields standard output, which it does not close."""
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"--output {path}: {why}; name a file in a folder that is there") from error
    with file:
        yield file


def write_json_line(target: TextIO, line: bytes) -> None:
    """Writes a line of JSON to what :func:`output_file` gave: unchanged to a file, to a terminal with unsafe characters
    as JSON escapes."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")
