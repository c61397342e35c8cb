"""Durable judge jobs.

A job is ``due``, ``leased``, then ``done``, ``dead`` (can be retried) or ``cancelled`` (obsolete). Leases never expire;
a start makes them due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import Job, JobEnd, JobRow
from pandaeval_collector.store.table import StoreTable, insert, written

_JOB = ", ".join(Job.__dataclass_fields__)
_BLOCK_BITS = 12
_BY_ID = "no >> 12 IN (SELECT value FROM json_each(?)) AND id = ?"
"""Condition on a job, with the values :func:`_blocks` and its id."""
_DAY_S = 86_400.0


class Jobs(StoreTable):
    """The jobs of a store. Due times use its running clock."""

    @written
    def lease(self, connection: sqlite3.Connection, now: float, count: int) -> list[Job]:
        """Lease the newest ``count`` due jobs, and above 1, other due jobs of the same traces. Counts the attempt."""
        return _lease(connection, "due_at <= ? ORDER BY created_at DESC", now, count)

    @written
    def lease_old(self, connection: sqlite3.Connection, before: float, count: int) -> list[Job]:
        """Lease ``count`` jobs created before a time, oldest first, due or postponed."""
        return _lease(connection, "created_at < ? ORDER BY created_at", before, count)

    @written
    def put_back(
        self,
        connection: sqlite3.Connection,
        job_id: str,
        due_at: float,
        error: str = "",
        *,
        crashed: bool = False,
        free: bool = False,
    ) -> None:
        """Make a leased job due at ``due_at``. ``free``: the attempt does not count."""
        connection.execute(
            f"""UPDATE jobs SET state = 'due', due_at = ?, error = ?, ended_at = ?, crashes = crashes + ?,
                attempts = attempts - ?
                WHERE {_BY_ID} AND state = 'leased'""",  # noqa: S608
            (due_at, error[:500], self._clock.calendar(), crashed, free, _blocks(connection), job_id),
        )

    @written
    def release_all(self, connection: sqlite3.Connection) -> int:
        """Make leased jobs due at a start, and limit postponements to a day. Returns the number of leases.

        An attempt that a crash of the collector interrupted does not count.
        """
        longest = self._clock.running() + _DAY_S
        connection.execute("UPDATE jobs SET due_at = ? WHERE state = 'due' AND due_at > ?", (longest, longest))
        released = "UPDATE jobs SET state = 'due', attempts = attempts - 1 WHERE state = 'leased'"
        return connection.execute(released).rowcount

    def counts(self) -> dict[str, int]:
        return dict(self._rows("SELECT state, count(*) FROM jobs GROUP BY state"))

    def waiting(self) -> int:
        return int(self._row("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')")[0])

    def last_error(self) -> str | None:
        """Return the newest error of the waiting jobs whose last try failed, else ``None``."""
        query = """SELECT error FROM jobs WHERE state IN ('due', 'leased') AND error <> ''
                   ORDER BY ended_at DESC LIMIT 1"""
        row = self._row(query)
        return row[0] if row else None

    def pending_in(self, session_ids: Iterable[str]) -> set[str]:
        """Return the sessions with unjudged traces, in any collector."""
        query = """SELECT session_id FROM sessions WHERE session_id IN ({marks}) AND (EXISTS
                   (SELECT 1 FROM members JOIN jobs ON jobs.trace = members.no
                    WHERE members.session = sessions.no AND jobs.state IN ('due', 'leased')) OR EXISTS
                   (SELECT 1 FROM members JOIN traces ON traces.no = members.no
                    WHERE members.session = sessions.no AND traces.revision = 0
                    AND instr(CAST(body AS TEXT), '"outcome":"pending"')))"""
        return {row[0] for row in numbers.each_of(self._reader(), query, session_ids)}

    def next_due(self) -> float | None:
        due: float | None = self._row("SELECT min(due_at) FROM jobs WHERE state = 'due'")[0]
        return due


def _lease(connection: sqlite3.Connection, which: str, time: float, count: int) -> list[Job]:
    query = f"SELECT no, trace FROM jobs WHERE state = 'due' AND {which} LIMIT ?"  # noqa: S608
    rows = connection.execute(query, (time, count)).fetchall()
    held = dict.fromkeys((no,) for no, _ in rows)
    for trace in dict.fromkeys(trace for _, trace in rows if trace and count > 1):
        rest = "SELECT no FROM jobs WHERE trace = ? AND state = 'due' AND due_at <= ?"
        held |= dict.fromkeys(connection.execute(rest, (trace, time)).fetchall())
    connection.executemany("UPDATE jobs SET state = 'leased', attempts = attempts + 1 WHERE no = ?", held)
    jobs = f"SELECT {_JOB} FROM jobs WHERE no = ?"  # noqa: S608
    return [Job(*connection.execute(jobs, key).fetchone()) for key in held]


def add(
    connection: sqlite3.Connection,
    jobs: Sequence[JobRow],
    traces: Mapping[bytes, int],
    redecided: Collection[bytes],
    now: float,
    fresh: Collection[bytes],
    ended_at: float,
) -> None:
    """Insert jobs. Cancels other due jobs of ``redecided`` traces.

    ``fresh``: traces without jobs or results. ``now``: running clock. ``ended_at``: calendar.
    """
    wanted = {job.id for job in jobs}
    for trace_id in redecided:
        rows = connection.execute("SELECT id, no FROM jobs WHERE trace = ? AND state = 'due'", (traces[trace_id],))
        connection.executemany(
            "UPDATE jobs SET state = 'cancelled', why = 'superseded', ended_at = ? WHERE no = ?",
            [(ended_at, no) for id_, no in rows.fetchall() if id_ not in wanted],
        )
    known = {traces[job.trace_id] for job in jobs if job.trace_id not in fresh}
    there = _ids(connection, "jobs WHERE trace", known)
    there |= _ids(connection, "results WHERE about", known & {traces[trace_id] for trace_id in redecided})
    insert(
        connection,
        "jobs (id, trace, trace_id, metric, state, due_at, created_at, body)",
        [
            (job.id, traces[job.trace_id], job.trace_id, job.metric, "due", now + job.delay, now, job.body)
            for job in jobs
            if job.id not in there
        ],
    )


def _ids(connection: sqlite3.Connection, where: str, traces: Collection[int]) -> set[str]:
    return {row[0] for row in numbers.each_of(connection, f"SELECT id FROM {where} IN ({{marks}})", traces)}  # noqa: S608


def _blocks(connection: sqlite3.Connection) -> str:
    return numbers.blocks(connection, "jobs", _BLOCK_BITS)


def end(connection: sqlite3.Connection, ends: Sequence[JobEnd], now: float) -> None:
    if ends:
        among = _blocks(connection)
        connection.executemany(
            f"UPDATE jobs SET state = ?, why = ?, error = ?, ended_at = ? WHERE {_BY_ID} AND state = 'leased'",  # noqa: S608
            [(each.state, each.why, each.error[:500], now, among, each.id) for each in ends],
        )


def listed(connection: sqlite3.Connection, state: str | None = None, limit: int = 20, start: str = "") -> list[Job]:
    rows = connection.execute(
        f"""SELECT {_JOB} FROM jobs WHERE (?1 IS NULL OR state = ?1) AND substr(id, 1, length(?2)) = ?2
            ORDER BY created_at DESC LIMIT ?3""",  # noqa: S608
        (state, start, limit),
    )
    return [Job(*row) for row in rows]


def retry(connection: sqlite3.Connection, job_ids: Sequence[str], now: float) -> int:
    """Make dead jobs due without attempts; return their number."""
    among = _blocks(connection)
    return sum(
        connection.execute(
            f"""UPDATE jobs SET state = 'due', due_at = ?, created_at = ?, attempts = 0, crashes = 0, why = '',
                ended_at = NULL WHERE {_BY_ID} AND state = 'dead'""",  # noqa: S608
            (now, now, among, job_id),
        ).rowcount
        for job_id in job_ids
    )
