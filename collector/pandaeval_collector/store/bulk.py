"""Inserts many rows with few statements.

While a statement runs, the thread releases the interpreter lock; beside a thread that computes it waits up to five
milliseconds to get it back. With one statement for each row, a commit would take many times as long as its work does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice, repeat

_MOST, _EXACT = 64, 16
"""Rows of a statement; up to how many there is one for each number of them."""


def insert(
    connection: sqlite3.Connection,
    into: str,
    rows: Iterable[Sequence[object]],
    on_conflict: str = "",
    verb: str = "INSERT",
) -> None:
    """Inserts rows in their order. ``into``: a table, and its columns where not all are set. ``on_conflict``: the
    clause behind the values."""
    rest = iter(rows := list(rows))
    for size in _sizes(len(rows)):
        block = list(islice(rest, size))
        connection.execute(_statement(verb, into, len(block[0]), size, on_conflict), list(chain.from_iterable(block)))


def _sizes(rows: int) -> Iterator[int]:
    """Splits ``rows`` into a few common sizes, so that there are few statements, most of which SQLite has ready."""
    yield from repeat(_MOST, rows // _MOST)
    rows %= _MOST
    while rows > _EXACT:
        size = 1 << rows.bit_length() - 1
        yield size
        rows -= size
    if rows:
        yield rows


@cache
def _statement(verb: str, into: str, columns: int, rows: int, on_conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{verb} INTO {into} VALUES {', '.join([row] * rows)} {on_conflict}"
