"""Numbers of traces and sessions, in order of arrival. They keep commits small."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

BY_ID = "no >> 13 IN (SELECT value FROM json_each(?)) AND trace_id IN ({marks})"
"""Condition on traces, with the values :func:`blocks` and their ids."""
_BLOCK_BITS = 13
_MANY = 500
_TRACE_OR_TURN = re.compile(r"([0-9a-f]{32})(?::[0-9a-f]{16})?")


def each_of(connection: sqlite3.Connection, query: str, values: Iterable[object], *first: object) -> Iterator[Any]:
    """Yield rows of a query with ``IN ({marks})``, in batches. ``first``: preceding values."""
    for marks, group in batched(values):
        yield from connection.execute(query.format(marks=marks), (*first, *group)).fetchall()


def batched(values: Iterable[object]) -> Iterator[tuple[str, Sequence[object]]]:
    rest = iter(values)
    while group := list(islice(rest, _MANY)):
        yield ",".join("?" * len(group)), group


def json_list(values: Iterable[int]) -> str:
    return orjson.dumps([*values]).decode()


def blocks(connection: sqlite3.Connection, table: str = "traces", bits: int = _BLOCK_BITS) -> str:
    ends = f"SELECT (SELECT min(no) FROM {table}), (SELECT max(no) FROM {table})"  # noqa: S608
    first, last = connection.execute(ends).fetchone()
    return json_list(() if last is None else range(first >> bits, (last >> bits) + 1))


def following(connection: sqlite3.Connection, table: str) -> int:
    newest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(newest[0]) + 1 if newest else 1


def of_traces(connection: sqlite3.Connection, trace_ids: Collection[bytes]) -> dict[bytes, int]:
    query = f"SELECT trace_id, no FROM traces WHERE {BY_ID}"  # noqa: S608
    return dict(each_of(connection, query, trace_ids, blocks(connection))) if trace_ids else {}


def of_sessions(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, int]:
    return dict(each_of(connection, "SELECT session_id, no FROM sessions WHERE session_id IN ({marks})", session_ids))


def of_units(connection: sqlite3.Connection, units: Collection[str]) -> list[int]:
    traces = of_traces(connection, {bytes.fromhex(id_) for unit in units if (id_ := trace_of(unit))})
    return [*traces.values(), *(-number for number in of_sessions(connection, units).values())]


def trace_of(unit: str) -> str:
    found = _TRACE_OR_TURN.fullmatch(unit)
    return "" if found is None else found[1]
