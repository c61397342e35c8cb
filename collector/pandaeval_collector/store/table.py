"""Reading, writing and bulk inserts of store tables.

A statement releases the interpreter lock, and getting it back may take five milliseconds beside a computing thread. So
rows are inserted in few statements.
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
"""Rows of a statement; up to how many there is one for each number of them."""


class Writes(Protocol):
    """Runs the work that tables do on the store's writing connection. Any thread."""

    def write(
        self, work: Callable[..., T], table: StoreTable, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[T]:
        """Queue ``work(table, connection, *arguments, **options)``. The future is done after the commit."""
        ...


class StoreTable:
    """The tables of one subject in one store. Reading is safe from any thread that ``reader`` has a connection for.
    Without ``writes``, nothing can be written."""

    def __init__(
        self, reader: Callable[[], sqlite3.Connection], writes: Writes | None = None, clock: StoreClock | None = None
    ) -> None:
        self._reader, self._writes, self._clock = reader, cast(Writes, writes), cast(StoreClock, clock)

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._reader().execute(query, values).fetchall()

    def _row(self, query: str, *values: object) -> Any:
        return self._reader().execute(query, values).fetchone()


def written(work: Callable[Concatenate[Table, sqlite3.Connection, P], T]) -> Callable[Concatenate[Table, P], Future[T]]:
    """Has a method of a table run on the store's writing connection, in a transaction. Callers get a future, which is
    done after the commit."""

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
    """Insert rows in their order. ``into``: a table, and its columns where not all are set. ``on_conflict``: the
    clause behind the values."""
    rest = iter(rows := list(rows))
    for size in _sizes(len(rows)):
        block = list(islice(rest, size))
        connection.execute(_statement(verb, into, len(block[0]), size, on_conflict), list(chain.from_iterable(block)))


def _sizes(rows: int) -> Iterator[int]:
    """Split ``rows`` into a few common sizes, so that there are few statements, most of which SQLite has ready."""
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
