"""Traces and sessions by number.

Numbers grow in order of arrival, so rows that are keyed by them lie together when they come together: a commit writes
to a few pages however large the store is. Random ids as keys would dirty a page each. What remains is to find the
number of an id: the index ``traces_by_id`` is ordered by blocks of numbers first, so that it grows at its end too, and
is asked once per block.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import orjson

BY_ID = "no >> 13 IN (SELECT value FROM json_each(?)) AND trace_id IN ({marks})"
"""Finds traces by id: with :func:`blocks` and so many ids."""
_BLOCK_BITS = 13
_MANY = 500
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


def batched(values: Iterable[object]) -> Iterator[tuple[str, Sequence[object]]]:
    """Values in groups that fit into one statement, each with its question marks."""
    rest = iter(values)
    while group := list(islice(rest, _MANY)):
        yield ",".join("?" * len(group)), group


def blocks(connection: sqlite3.Connection, table: str = "traces", bits: int = _BLOCK_BITS) -> str:
    """The blocks of numbers that there are in a table, as :data:`BY_ID` wants them."""
    ends = f"SELECT (SELECT min(no) FROM {table}), (SELECT max(no) FROM {table})"  # noqa: S608
    first, last = connection.execute(ends).fetchone()
    return orjson.dumps([] if last is None else [*range(first >> bits, (last >> bits) + 1)]).decode()


def of_traces(connection: sqlite3.Connection, trace_ids: Collection[bytes]) -> dict[bytes, int]:
    """The numbers of those traces that are there."""
    found: dict[bytes, int] = {}
    if trace_ids:
        among = blocks(connection)
        for marks, group in batched(trace_ids):
            query = f"SELECT trace_id, no FROM traces WHERE {BY_ID.format(marks=marks)}"  # noqa: S608
            found.update(connection.execute(query, (among, *group)))
    return found


def of_sessions(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, int]:
    """The numbers of those sessions that are there."""
    found: dict[str, int] = {}
    for marks, group in batched(session_ids):
        query = f"SELECT session_id, no FROM sessions WHERE session_id IN ({marks})"  # noqa: S608
        found.update(connection.execute(query, group))
    return found


def of_units(connection: sqlite3.Connection, units: Collection[str]) -> list[int]:
    """What results of these traces and sessions are filed under: a trace's number, or a session's below zero."""
    traces = of_traces(connection, [bytes.fromhex(unit) for unit in units if _TRACE_ID.fullmatch(unit)])
    return [*traces.values(), *(-number for number in of_sessions(connection, units).values())]


def is_trace(unit: str, metric: str) -> bool:
    """Whether a result is about a trace."""
    return metric.startswith("trace.") and _TRACE_ID.fullmatch(unit) is not None
