"""Writes to a file or standard output."""

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
    """Write a line of JSON; to a terminal with unsafe characters escaped."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")
