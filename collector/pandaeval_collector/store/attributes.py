"""Attributes by which lists find agents' traces: those that are configured, of any span of a trace or its resource.

A pair of key and value is stored once, as ``key=value``; a trace has a row of two numbers for each of its pairs. Rows
of a pair lie together in the order in which the traces came, so that a commit writes to one page for each pair that it
meets, however large the store is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

from pandaeval_collector.store import numbers
from pandaeval_collector.store.bulk import insert
from pandaeval_collector.store.rows import ListedRow

CONDITION = """{t}.no IN (SELECT a.no FROM listed_attributes AS a
    WHERE a.pair = (SELECT p.id FROM attribute_pairs AS p WHERE p.pair = ?))"""
"""The condition that a trace has a pair; ``{t}``: the name of the table ``listed`` in the query."""


def add(connection: sqlite3.Connection, rows: Sequence[ListedRow], of_trace: Mapping[bytes, int]) -> None:
    """Stores the pairs of listed traces, beside those that a trace has already. ``of_trace``: their numbers by id."""
    pairs = sorted({pair for row in rows for pair in row.attributes})
    if not pairs:
        return
    insert(connection, "attribute_pairs (pair)", [(pair,) for pair in pairs], verb="INSERT OR IGNORE")
    known = dict(numbers.each_of(connection, "SELECT pair, id FROM attribute_pairs WHERE pair IN ({marks})", pairs))
    found = sorted((known[pair], of_trace[row.trace_id]) for row in rows for pair in row.attributes)
    insert(connection, "listed_attributes (pair, no)", found, verb="INSERT OR IGNORE")


def tag(connection: sqlite3.Connection, pair: str, trace_ids: Collection[bytes]) -> int:
    """Adds a pair to listed traces; returns how many of them are listed."""
    connection.execute("INSERT OR IGNORE INTO attribute_pairs (pair) VALUES (?)", (pair,))
    (id_,) = connection.execute("SELECT id FROM attribute_pairs WHERE pair = ?", (pair,)).fetchone()
    named = numbers.of_traces(connection, trace_ids).values()
    rows = [*numbers.each_of(connection, "SELECT no FROM listed WHERE no IN ({marks})", named)]
    connection.executemany("INSERT OR IGNORE INTO listed_attributes VALUES (?, ?)", [(id_, no) for (no,) in rows])
    return len(rows)


def forget(connection: sqlite3.Connection, limit: int) -> int:
    """Deletes up to ``limit`` pairs of deleted traces, whose numbers are below all that are left; returns how many."""
    (first,) = connection.execute("SELECT coalesce(min(no), 1 << 60) FROM traces").fetchone()
    old = connection.execute(
        """SELECT id FROM attribute_pairs
           WHERE coalesce((SELECT min(no) FROM listed_attributes WHERE pair = id), 0) < ? LIMIT ?""",
        (first, limit),
    ).fetchall()
    gone = 0
    for (pair,) in old:
        gone += connection.execute(
            """DELETE FROM listed_attributes WHERE pair = ?1 AND no IN
               (SELECT no FROM listed_attributes WHERE pair = ?1 AND no < ?2 ORDER BY no LIMIT ?3)""",
            (pair, first, max(0, limit - gone)),
        ).rowcount
    connection.executemany(
        "DELETE FROM attribute_pairs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM listed_attributes WHERE pair = id)", old
    )
    return gone
