"""Reads, writes and bulk inserts of tables.

Bulk inserts use few statements, because each statement releases the interpreter lock.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain, islice, repeat
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from pandaeval_collector.store.clock import StoreClock

P = ParamSpec("P")
T = TypeVar("T")
Table = TypeVar("Table", bound="StoreTable")

_MOST, _EXACT = 64, 16
"""Maximum rows of a statement, and the maximum row count that has its own statement."""


class Writes(Protocol):
    """Runs tables' work on the writing connection. Any thread."""

    def write(
        self, work: Callable[..., T], table: StoreTable, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[T]:
        """Queue ``work(table, connection, *arguments, **options)``. The future is done after commit."""
        ...


class StoreTable:
    """The tables of a subject. Reads are thread-safe. Without ``writes``, it is read-only."""

    def __init__(
        self, reader: Callable[[], sqlite3.Connection], writes: Writes | None = None, clock: StoreClock | None = None
    ) -> None:
        self._reader, self._writes, self._clock = reader, cast(Writes, writes), cast(StoreClock, clock)

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._reader().execute(query, values).fetchall()

    def _row(self, query: str, *values: object) -> Any:
        return self._reader().execute(query, values).fetchone()


def written(work: Callable[Concatenate[Table, sqlite3.Connection, P], T]) -> Callable[Concatenate[Table, P], Future[T]]:
    """Run a method in a transaction on the writing connection, and return a future."""

    @functools.wraps(work)
    def queue(table: Table, /, *arguments: P.args, **options: P.kwargs) -> Future[T]:
        return table._writes.write(work, table, arguments, options)

    return queue


def insert(
    connection: sqlite3.Connection,
    into: str,
    rows: Iterable[Sequence[object]],
    on_conflict: str = "",
    verb: str = "INSERT",
) -> None:
    """Insert rows in order. ``into``: table and columns. ``on_conflict``: final clause."""
    rest = iter(rows := list(rows))
    for size in _sizes(len(rows)):
        block = list(islice(rest, size))
        connection.execute(_statement(verb, into, len(block[0]), size, on_conflict), list(chain.from_iterable(block)))


def _sizes(rows: int) -> Iterator[int]:
    yield from repeat(_MOST, rows // _MOST)
    rows %= _MOST
    while rows > _EXACT:
        size = 1 << rows.bit_length() - 1
        yield size
        rows -= size
    if rows:
        yield rows


@functools.cache
def _statement(verb: str, into: str, columns: int, rows: int, on_conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{verb} INTO {into} VALUES {', '.join([row] * rows)} {on_conflict}"
