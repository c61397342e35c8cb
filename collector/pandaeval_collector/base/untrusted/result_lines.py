"""Results as JSON lines, as ``pandaeval evaluate --format json`` and the jsonl exporter write them, read back."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import open_given
from pandaeval_collector.base.untrusted.printable import one_printable_line

STDIN = "-"
_MOST_OF_A_LINE = 64 << 20
_TEXTS = ("metric", "level", "outcome")


def result_lines(path: Path | str) -> Iterator[dict[str, Any]]:
    """Each result of a file, ``-`` for standard input, in its order; every one has the texts ``metric``, ``level`` and
    ``outcome``, and a number as its ``revision`` if it has one. Raises ``UserError`` where a line is no result."""
    name = "standard input" if str(path) == STDIN else str(path)
    try:
        if str(path) == STDIN:
            yield from results_of(_lines(sys.stdin), name)
        else:
            with io.TextIOWrapper(open_given(path), encoding="utf-8-sig") as file:
                yield from results_of(_lines(file), name)
    except OSError as error:
        cure = "name what `pandaeval evaluate --format json -o FILE` wrote"
        raise UserError(f"{name} cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8: results are JSON lines, as `evaluate --format json` writes") from error


def _lines(file: TextIO) -> Iterator[str]:
    """A line that is too long comes in parts, which are no results."""
    return iter(lambda: file.readline(_MOST_OF_A_LINE), "")


def results_of(lines: Iterable[str], name: str) -> Iterator[dict[str, Any]]:
    """Reads results from lines of text; ``name``: what to call their source."""
    for number, text in enumerate(lines, 1):
        if text.strip():
            yield _result(text, name, number)


def _result(text: str, name: str, line: int) -> dict[str, Any]:
    try:
        result = orjson.loads(text)
        texts = isinstance(result, dict) and all(isinstance(result.get(key), str) for key in _TEXTS)
        if not texts or not isinstance(result.get("revision"), int | None):
            raise ValueError
    except ValueError:
        raise UserError(
            one_printable_line(f"{name}, line {line}: no result; `pandaeval evaluate --format json` writes such lines")
        ) from None
    found: dict[str, Any] = result
    return found
