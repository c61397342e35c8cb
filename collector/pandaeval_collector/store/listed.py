"""The table by which people find traces and sessions again: a row for each agent's trace (under its number), and one
for each session that has results of its own (under its number below zero), ordered by how bad they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pandaeval_collector.store import attributes
from pandaeval_collector.store.bulk import insert
from pandaeval_collector.store.rows import ListedRow, ResultRow

NO_SCORE = 2.0
"""Stands for the signal of what has no score: after all others."""
NOT_FAILED = 10.0
"""What is added to the signal of a unit in which nothing failed: it comes after all that did."""


@dataclass(slots=True)
class Badness:
    """How bad a unit is. ``badness``: its worst signal (0..1, or :data:`NO_SCORE`), above :data:`NOT_FAILED` where
    nothing failed: units in its order are worst first. ``failures``: of results, and of the run itself."""

    badness: float
    failures: int

    @classmethod
    def of(cls, results: Iterable[tuple[bool | None, float | None]], broken: bool) -> Badness:
        """Computes how bad a unit is. ``results``: (success, signal) of each result that stands. ``broken``: the run
        itself failed, which is as bad as can be."""
        worst, failures = 0.0 if broken else NO_SCORE, int(broken)
        for success, signal in results:
            failures += success is False
            if signal is not None and signal < worst:
                worst = signal
        worst = round(worst, 2)  # with few different values, few places of the index are written
        return cls(worst if failures else NOT_FAILED + worst, failures)


def add(
    connection: sqlite3.Connection,
    rows: Sequence[ListedRow],
    of_trace: Mapping[bytes, int],
    of_session: Mapping[bytes, int],
    results: Sequence[tuple[ResultRow, int]],
    first_time: Collection[bytes],
) -> None:
    """Lists decided traces, and updates the rows of other units with new results. ``of_trace``, ``of_session``: the
    numbers of each trace and of its session, by trace id; ``results``: the new ones, with the number that each is
    about; ``first_time``: traces of which there were no results before."""
    fresh: dict[int, list[tuple[bool | None, float | None]]] = {}
    for result, about in results:
        fresh.setdefault(about, []).append((result.success, result.signal))
    again = fresh.keys() - {0} - {of_trace[row.trace_id] for row in rows}
    new = []
    for row in rows:
        no = of_trace[row.trace_id]
        known = fresh.get(no, ()) if row.trace_id in first_time else _standing_results(connection, no)
        standing = Badness.of(known, row.broken)
        named = row.agent, row.service, row.environment, row.user
        session = of_session.get(row.trace_id, 0)
        new.append((no, session, row.at_ms, *named, row.broken, standing.badness, standing.failures, row.facts))
    insert(
        connection,
        "listed (no, session, at, agent, service, environment, user, broken, badness, failures, facts)",
        new,
        verb="INSERT OR REPLACE",
    )
    attributes.add(connection, rows, of_trace)
    for about in again:
        _file_again(connection, about)


def move(connection: sqlite3.Connection, sessions: Mapping[int, int]) -> None:
    """Files listed traces under other sessions. ``sessions``: numbers of sessions by those of traces."""
    connection.executemany(
        "UPDATE listed SET session = ? WHERE no = ? AND session != ?",
        [(session, no, session) for no, session in sessions.items()],
    )


def forget(connection: sqlite3.Connection, limit: int) -> int:
    """Deletes rows of traces and sessions that are deleted: those with numbers below all that are left."""
    traces = connection.execute(
        """DELETE FROM listed WHERE no IN (SELECT no FROM listed
           WHERE no > 0 AND no < coalesce((SELECT min(no) FROM traces), 1 << 60) LIMIT ?)""",
        (limit,),
    ).rowcount
    sessions = connection.execute(
        """DELETE FROM listed WHERE no IN (SELECT no FROM listed
           WHERE no < 0 AND no > -coalesce((SELECT min(no) FROM sessions), 1 << 60) LIMIT ?)""",
        (limit,),
    ).rowcount
    return max(traces, sessions, attributes.forget(connection, limit))


def _file_again(connection: sqlite3.Connection, about: int) -> None:
    results = _standing_results(connection, about)
    if about < 0:
        standing = Badness.of(results, False)
        connection.execute(
            """INSERT INTO listed (no, session, at, badness, failures)
               SELECT ?1, ?2,
                      coalesce((SELECT max(at) FROM listed WHERE session = ?2 AND session > 0 AND no > 0), 0), ?3, ?4
               ON CONFLICT (no) DO UPDATE SET at = excluded.at, badness = excluded.badness, failures = excluded.failures
            """,
            (about, -about, standing.badness, standing.failures),
        )
        return
    row = connection.execute("SELECT broken FROM listed WHERE no = ?", (about,)).fetchone()
    if row is not None:
        standing = Badness.of(results, bool(row[0]))
        connection.execute(
            "UPDATE listed SET badness = ?, failures = ? WHERE no = ?", (standing.badness, standing.failures, about)
        )


def _standing_results(connection: sqlite3.Connection, about: int) -> list[tuple[bool | None, float | None]]:
    """Returns (success, signal) of the newest result of each metric about a unit."""
    rows = connection.execute(
        "SELECT success, signal, max(seq) FROM results WHERE about = ? GROUP BY unit, metric", (about,)
    )
    return [(None if success is None else bool(success), signal) for success, signal, _ in rows]
