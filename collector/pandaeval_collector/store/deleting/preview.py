"""Counts the data before a deletion, and lists copies outside the store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator

from pandaeval_collector.store.deleting.about import ROWS
from pandaeval_collector.store.deleting.meta import beginning_with
from pandaeval_collector.store.deleting.queued import concerns, items_of, rows_after
from pandaeval_collector.store.deleting.selecting import decided, undecided

_CURSOR = "cursor:"
_FROM_LOG = "SELECT EXISTS (SELECT 1 FROM log_partitions) OR EXISTS (SELECT 1 FROM member_log_partitions)"


def preview(connection: sqlite3.Connection, kind: str, value: str) -> Counter[str]:
    about = decided(connection, kind, value)
    counts: Counter[str] = Counter()
    for name, table, condition in ROWS:
        if name:
            query = f"SELECT count(*) FROM {table} WHERE {condition}"  # noqa: S608
            counts[name] += connection.execute(query, about.values()).fetchone()[0]
    waiting = _all_undecided(connection, kind, value)
    counts["traces"] += len(waiting)
    gone = {*about.ids(), *waiting}
    for item in _all_queued(connection):
        counts["queued_exports"] += concerns(item, gone)
    return counts


def sinks(connection: sqlite3.Connection) -> list[str]:
    """Return the exporters that have sent results, and ``kafka topics`` if used."""
    names = [key.removeprefix(_CURSOR) for key, _ in beginning_with(connection, _CURSOR)]
    (from_log,) = connection.execute(_FROM_LOG).fetchone()
    return [*names, *["kafka topics"] * from_log]


def _all_undecided(connection: sqlite3.Connection, kind: str, value: str) -> set[str]:
    ids: set[str] = set()
    at, has_more = 0, True
    while has_more:
        found, at, has_more = undecided(connection, kind, value, at)
        ids.update(id_.hex() for id_ in found)
    return ids


def _all_queued(connection: sqlite3.Connection) -> Iterator[bytes]:
    at = 0
    while rows := rows_after(connection, at):
        for row in rows:
            yield from items_of(row[3], row[4])
        at = rows[-1][0]
