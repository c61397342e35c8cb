"""Writes to a file or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import orjson

from pandaeval_collector.cli._output import binary_file
from pandaeval_collector.cli._terminal import write_json


@contextmanager
def output_file(path: Path | None) -> Iterator[TextIO]:
    """Open a file, or standard output for ``-`` or without ``path``. Raises ``UserError``."""
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    with binary_file(path) as file, TextIOWrapper(file, encoding="utf-8") as text:
        yield text


def write_json_line(target: TextIO, line: bytes) -> None:
    """Write a line of JSON; to a terminal with unsafe characters escaped."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")


def write_json_lines(objects: Iterable[object], target: TextIO) -> None:
    for each in objects:
        write_json_line(target, orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY))
