"""Reads results of ``pandaeval evaluate --format json``."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.base.untrusted.user_files import open_given

STDIN = "-"
_MOST_OF_A_LINE = 64 << 20
_TEXTS = ("metric", "level", "outcome")


def result_lines(path: Path | str) -> Iterator[dict[str, Any]]:
    """Yield each result of a file (``-``: standard input), validated. Raises ``UserError``."""
    name = "standard input" if str(path) == STDIN else str(path)
    try:
        if str(path) == STDIN:
            yield from results_of(sys.stdin, name)
        else:
            with io.TextIOWrapper(open_given(path), encoding="utf-8-sig") as file:
                yield from results_of(file, name)
    except OSError as error:
        cure = "give the file that `pandaeval evaluate --format json -o FILE` wrote"
        raise UserError(f"{name} cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8; give the JSON lines of `pandaeval evaluate --format json`") from error


def results_of(file: TextIO, name: str) -> Iterator[dict[str, Any]]:
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
