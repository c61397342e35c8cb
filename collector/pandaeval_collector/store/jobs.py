"""What is still to be judged, what judges said, and what they cost: durable, so that a restart forgets no job, pays for
no verdict twice, and does not reset the day's spending.

A job is ``due``, then ``leased`` (this process is at it), then ``done``, ``dead`` (given up, can be retried by hand) or
``cancelled`` (a newer revision or a changed configuration made it pointless). A lease does not run out: one process
owns the store, and what the one before it held is due again at the start. Jobs begin and end in the transactions of
:mod:`pandaeval_collector.store.changes`; here is what happens to them in between.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import Job, JobEnd, JobRow
from pandaeval_collector.store.table import StoreTable, insert

_JOB = ", ".join(Job.__dataclass_fields__)
_BLOCK_BITS = 12
_BY_ID = "no >> 12 IN (SELECT value FROM json_each(?)) AND id = ?"
"""Finds a job, given :func:`_blocks` and its id."""
_DAY_S = 86_400.0


class Jobs(StoreTable):
    """The jobs of one store. Due times are of the store's running clock."""

    def lease(self, now: float, count: int) -> Future[list[Job]]:
        """Leases ``count`` due jobs, newest first: nobody gets them again until they are put back. With more than one,
        also the others that are due about the same traces, which share calls. An attempt is counted before it is
        made."""
        return self._lease("due_at <= ? ORDER BY created_at DESC", now, count)

    def lease_old(self, before: float, count: int) -> Future[list[Job]]:
        """Leases ``count`` jobs, as :meth:`lease` does, that were created before a time of the running clock, oldest
        first, whether they are due or put off."""
        return self._lease("created_at < ? ORDER BY created_at", before, count)

    def _lease(self, which: str, time: float, count: int) -> Future[list[Job]]:
        def work(connection: sqlite3.Connection) -> list[Job]:
            query = f"SELECT no, trace FROM jobs WHERE state = 'due' AND {which} LIMIT ?"  # noqa: S608
            found = connection.execute(query, (time, count)).fetchall()
            held = dict.fromkeys((no,) for no, _ in found)
            for trace in dict.fromkeys(trace for _, trace in found if trace and count > 1):
                rest = "SELECT no FROM jobs WHERE trace = ? AND state = 'due' AND due_at <= ?"
                held |= dict.fromkeys(connection.execute(rest, (trace, time)).fetchall())
            connection.executemany("UPDATE jobs SET state = 'leased', attempts = attempts + 1 WHERE no = ?", held)
            jobs = f"SELECT {_JOB} FROM jobs WHERE no = ?"  # noqa: S608
            return [Job(*connection.execute(jobs, key).fetchone()) for key in held]

        return self._writer.submit(work)

    def put_back(
        self, job_id: str, due_at: float, error: str = "", *, crashed: bool = False, free: bool = False
    ) -> Future[int]:
        """Makes a leased job due again at ``due_at``. ``free``: the attempt does not count."""
        statement = f"""UPDATE jobs SET state = 'due', due_at = ?, error = ?, crashes = crashes + ?,
                        attempts = attempts - ? WHERE {_BY_ID} AND state = 'leased'"""  # noqa: S608
        values = (due_at, error[:500], crashed, free)
        return self._writer.submit(
            lambda connection: connection.execute(statement, (*values, _blocks(connection), job_id)).rowcount
        )

    def release_all(self) -> Future[int]:
        """Makes all leased jobs due again: a new process alone owns the directory. Also limits to a day how long any
        job is put off, which may be longer in a store that followed a wrong clock. The future holds how many leases
        there were."""
        longest = self._clock.running() + _DAY_S

        def work(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE jobs SET due_at = ? WHERE state = 'due' AND due_at > ?", (longest, longest))
            return connection.execute("UPDATE jobs SET state = 'due' WHERE state = 'leased'").rowcount

        return self._writer.submit(work)

    def counts(self) -> dict[str, int]:
        """Counts the jobs in each state."""
        return dict(self._rows("SELECT state, count(*) FROM jobs GROUP BY state"))

    def waiting(self) -> int:
        """Counts the jobs that are due or leased."""
        return int(self._row("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')")[0])

    def pending_in(self, session_ids: Iterable[str]) -> set[str]:
        """Returns the sessions with a trace that a judge has yet to be asked about, here or where the trace was
        decided."""
        query = """SELECT session_id FROM sessions WHERE session_id IN ({marks}) AND (EXISTS
                   (SELECT 1 FROM members JOIN jobs ON jobs.trace = members.no
                    WHERE members.session = sessions.no AND jobs.state IN ('due', 'leased')) OR EXISTS
                   (SELECT 1 FROM members JOIN traces ON traces.no = members.no
                    WHERE members.session = sessions.no AND traces.revision = 0
                    AND instr(CAST(body AS TEXT), '"outcome":"pending"')))"""
        return {row[0] for row in numbers.each_of(self._reader(), query, session_ids)}

    def next_due(self) -> float | None:
        """Returns when the next job is due; ``None`` where none waits."""
        due: float | None = self._row("SELECT min(due_at) FROM jobs WHERE state = 'due'")[0]
        return due


def add(
    connection: sqlite3.Connection,
    jobs: Sequence[JobRow],
    traces: Mapping[bytes, int],
    redecided: Collection[bytes],
    now: float,
    fresh: Collection[bytes],
    ended_at: float,
) -> None:
    """Inserts new jobs. Cancels due jobs of ``redecided`` traces that are not among them. ``traces``: the numbers of
    all these traces; of ``fresh`` ones there can be neither jobs nor results yet. ``now`` is of the running clock,
    ``ended_at`` of the calendar."""
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
    """Ends jobs, for good or until somebody retries them."""
    if ends:
        among = _blocks(connection)
        connection.executemany(
            f"UPDATE jobs SET state = ?, why = ?, error = ?, ended_at = ? WHERE {_BY_ID} AND state = 'leased'",  # noqa: S608
            [(each.state, each.why, each.error[:500], now, among, each.id) for each in ends],
        )


def listed(connection: sqlite3.Connection, state: str | None = None, limit: int = 20, start: str = "") -> list[Job]:
    """Jobs, newest first, of one state or all, whose id begins with ``start``."""
    rows = connection.execute(
        f"""SELECT {_JOB} FROM jobs WHERE (?1 IS NULL OR state = ?1) AND substr(id, 1, length(?2)) = ?2
            ORDER BY created_at DESC LIMIT ?3""",  # noqa: S608
        (state, start, limit),
    )
    return [Job(*row) for row in rows]


def retry(connection: sqlite3.Connection, job_ids: Sequence[str], now: float) -> int:
    """Makes dead jobs due again, with no attempt counted; returns how many."""
    among = _blocks(connection)
    return sum(
        connection.execute(
            f"""UPDATE jobs SET state = 'due', due_at = ?, created_at = ?, attempts = 0, crashes = 0, why = '',
                ended_at = NULL WHERE {_BY_ID} AND state = 'dead'""",  # noqa: S608
            (now, now, among, job_id),
        ).rowcount
        for job_id in job_ids
    )


# Verdicts that judges gave, under the hash of what they were given for: a restart pays for none of them twice.
class Verdicts(StoreTable):
    """The verdicts of one store."""

    def recall(self, key: str) -> bytes | None:
        """Returns the verdict that was kept under ``key``; ``None`` where there is none."""
        row = self._row("SELECT body FROM verdicts WHERE key = ?", key)
        return None if row is None else bytes(row[0])

    def keep(self, key: str, body: bytes) -> Future[Any]:
        """Remembers a verdict under the hash of what it was given for."""
        return self._writer.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", key, self._clock.calendar(), body
        )


# What judges cost, day by day. An amount is set aside (``reserved``) before a call is made, and replaced by what the
# call did cost (``settled``) after it. Days are those of the machine's clock, UTC.
_CENT = 1e-9
"""Sums of dollars are compared with this much tolerance."""


class Spending(StoreTable):
    """The spending of one store."""

    def today(self, now: float) -> float:
        """Returns a time of the day (UTC) whose budget is to be used at ``now`` of the machine's clock. A clock that
        was set back, by less than two days, stays with the day that was begun: no day is paid for twice."""
        (newest,) = self._row("SELECT substr(max(day), 1, 10) FROM spending")
        if newest is None or not _day(now) < newest <= _day(now + 2 * _DAY_S):
            return now
        return datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp()

    def reserve(self, usd: float, most: float | None, now: float) -> Future[bool]:
        """Reserves money of the day (UTC) for one call; the future holds ``False`` if less is left. ``most``: US
        dollars of the day, ``None``: no limit."""
        day = _day(now)

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", (day,))
            (used,) = connection.execute("SELECT reserved + settled FROM spending WHERE day = ?", (day,)).fetchone()
            if most is not None and used + usd > most + _CENT:
                return False
            connection.execute("UPDATE spending SET reserved = reserved + ? WHERE day = ?", (usd, day))
            return True

        return self._writer.submit(work)

    def settle(self, reserved: float, spent: float, reserved_at: float) -> Future[None]:
        """Replaces a reservation by the cost of the call. A cost that is negative or not finite counts as the
        reservation, so that no cost refills a day's budget."""
        day = _day(reserved_at)
        cost = spent if 0 <= spent < math.inf else reserved

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", (day,))
            change = "UPDATE spending SET reserved = max(0, reserved - ?), settled = settled + ? WHERE day = ?"
            connection.execute(change, (reserved, cost, day))

        return self._writer.submit(work)

    def settle_all(self) -> Future[int]:
        """Counts what a process that died had set aside as spent: its calls may have been made."""
        return self._writer.execute("UPDATE spending SET settled = settled + reserved, reserved = 0 WHERE reserved > 0")

    def spent(self, now: float) -> float:
        """Returns the US dollars of the day (UTC) of ``now``, reservations included."""
        return float(self._row("SELECT total(reserved + settled) FROM spending WHERE day = ?", _day(now))[0])


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()
