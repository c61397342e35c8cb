"""What is still to be judged, the verdicts that were given, and what they cost: durable, so that a restart neither
forgets a job nor pays for a verdict twice nor resets the day's spending.

A job is ``due``, then ``leased``, then ``done``, ``dead`` (given up, can be retried by hand) or ``cancelled`` (a newer
revision or a changed configuration made it pointless). Jobs begin and end in the transactions of
:mod:`pandaeval_collector.store.changes`; here is what happens to them in between.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime

from pandaeval_collector.store import numbers
from pandaeval_collector.store.bulk import insert
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.rows import Job, JobEnd, JobRow
from pandaeval_collector.store.writer import Writer

_JOB = "id, trace_id, metric, state, due_at, created_at, attempts, crashes, why, error, body"
_IDS = 500
_BLOCK_BITS = 12
_BY_ID = "no >> 12 IN (SELECT value FROM json_each(?)) AND id = ?"
"""Finds a job, given :func:`_blocks` and its id."""
_DAY_S = 86_400.0
_DAYS = (62,)
"""So many keys of spending are remembered, of dollars and of tokens: a month."""
_CENT = 1e-9
"""Sums of dollars are compared with this much tolerance."""

Amounts = tuple[float, float]
"""US dollars and tokens."""
Most = tuple[float | None, float | None]
"""The same as limits; ``None``: there is none."""


class Jobs:
    """The jobs of one store. Reading is safe from any thread, writing happens on the store's writer. When a job is due
    is a time of the store's running clock; days of spending are those of the machine's."""

    def __init__(self, writer: Writer, reader: Callable[[], sqlite3.Connection], clock: StoreClock) -> None:
        self._writer, self._reader, self.clock = writer, reader, clock

    # -- leases --------------------------------------------------------------------------------------------------

    def lease(self, now: float, count: int, seconds: float) -> Future[list[Job]]:
        """Up to ``count`` due jobs, newest first; an attempt is counted before it is made. Leases that ran out are
        due again."""

        def work(connection: sqlite3.Connection) -> list[Job]:
            connection.execute("UPDATE jobs SET state = 'due' WHERE state = 'leased' AND lease_until < ?", (now,))
            rows = connection.execute(
                f"""SELECT {_JOB}, no FROM jobs WHERE state = 'due' AND due_at <= ?
                    ORDER BY created_at DESC LIMIT ?""",  # noqa: S608
                (now, count),
            ).fetchall()
            connection.executemany(
                "UPDATE jobs SET state = 'leased', lease_until = ?, attempts = attempts + 1 WHERE no = ?",
                [(now + seconds, row[-1]) for row in rows],
            )
            held = [Job(*row[:-1]) for row in rows]
            return [replace(job, state="leased", attempts=job.attempts + 1) for job in held]

        return self._writer.submit(work)

    def put_back(
        self, job_id: str, due_at: float, error: str = "", *, crashed: bool = False, free: bool = False
    ) -> Future[None]:
        """A leased job is due again at ``due_at``. ``free``: the attempt does not count."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"""UPDATE jobs SET state = 'due', due_at = ?, error = ?, crashes = crashes + ?, attempts = attempts - ?
                    WHERE {_BY_ID} AND state = 'leased'""",  # noqa: S608
                (due_at, error[:500], crashed, free, _blocks(connection), job_id),
            )

        return self._writer.submit(work)

    def release_all(self) -> Future[int]:
        """Nobody holds a lease any more: what a new process says, since it alone owns the directory. Nor is any job put
        off for longer than a day, as it may be in a store that followed a wrong clock. The future holds how many leases
        there were."""
        longest = self.clock.running() + _DAY_S

        def work(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE jobs SET due_at = ? WHERE state = 'due' AND due_at > ?", (longest, longest))
            return connection.execute("UPDATE jobs SET state = 'due' WHERE state = 'leased'").rowcount

        return self._writer.submit(work)

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        return dict(self._reader().execute("SELECT state, count(*) FROM jobs GROUP BY state"))

    def waiting(self) -> int:
        """How many jobs are due or leased."""
        states = "state IN ('due', 'leased')"
        return int(self._reader().execute(f"SELECT count(*) FROM jobs WHERE {states}").fetchone()[0])  # noqa: S608

    def pending_in(self, session_ids: Iterable[str]) -> set[str]:
        """Those of some sessions about a trace of which a judge has yet to be asked."""
        found: set[str] = set()
        ids = list(session_ids)
        for start in range(0, len(ids), _IDS):
            some = ids[start : start + _IDS]
            rows = self._reader().execute(
                f"""SELECT session_id FROM sessions WHERE session_id IN ({",".join("?" * len(some))}) AND EXISTS
                    (SELECT 1 FROM members JOIN jobs ON jobs.trace = members.no
                     WHERE members.session = sessions.no AND jobs.state IN ('due', 'leased'))""",  # noqa: S608
                some,
            )
            found.update(row[0] for row in rows)
        return found

    def next_due(self) -> float | None:
        """When the next job is due."""
        row = self._reader().execute("SELECT min(due_at) FROM jobs WHERE state = 'due'").fetchone()
        return None if row[0] is None else float(row[0])

    # -- verdicts ------------------------------------------------------------------------------------------------

    def verdict(self, key: str) -> bytes | None:
        """A verdict that was given before."""
        row = self._reader().execute("SELECT body FROM verdicts WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep_verdict(self, key: str, body: bytes) -> Future[None]:
        """Remembers a verdict under the hash of what it was given for."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, self.clock.calendar(), body))

        return self._writer.submit(work)

    # -- spending ------------------------------------------------------------------------------------------------

    def today(self, now: float) -> float:
        """A time of the day (UTC) whose budget is to be used at ``now`` of the machine's clock. A clock that was set
        back, by less than two days, stays with the day that was begun: no day is paid for twice."""
        (newest,) = self._reader().execute("SELECT substr(max(day), 1, 10) FROM spending").fetchone()
        if newest is None or not _day(now) < newest <= _day(now + 2 * _DAY_S):
            return now
        return datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp()

    def reserve(self, amounts: Amounts, most: Most, now: float) -> Future[bool]:
        """Sets money and tokens of the day (UTC) aside for one call, both or neither; the future holds ``False`` when
        that is more than is left."""
        keys = _keys(now)

        def work(connection: sqlite3.Connection) -> bool:
            connection.executemany("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", [(key,) for key in keys])
            for key, amount, limit in zip(keys, amounts, most, strict=True):
                query = "SELECT reserved + settled FROM spending WHERE day = ?"
                if limit is not None and connection.execute(query, (key,)).fetchone()[0] + amount > limit + _CENT:
                    return False
            connection.executemany(
                "UPDATE spending SET reserved = reserved + ? WHERE day = ?", zip(amounts, keys, strict=True)
            )
            return True

        return self._writer.submit(work)

    def settle(self, reserved: Amounts, spent: Amounts, reserved_at: float) -> Future[None]:
        """Replaces a reservation by what the call did cost; what is no amount (negative, not finite) counts as what was
        reserved, so that nothing that is settled ever fills a day up again."""
        keys = _keys(reserved_at)
        counted = [cost if 0 <= cost < math.inf else most for cost, most in zip(spent, reserved, strict=True)]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", [(key,) for key in keys])
            connection.executemany(
                "UPDATE spending SET reserved = max(0, reserved - ?), settled = settled + ? WHERE day = ?",
                zip(reserved, counted, keys, strict=True),
            )

        return self._writer.submit(work)

    def settle_all(self) -> Future[None]:
        """Counts what a process that died had set aside as spent: its calls may have been made."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE spending SET settled = settled + reserved, reserved = 0 WHERE reserved > 0")

        return self._writer.submit(work)

    def spent(self, now: float) -> float:
        """US dollars of the day (UTC), reservations included."""
        return self._spent(_keys(now)[0])

    def spent_tokens(self, now: float) -> int:
        """Tokens of the day (UTC), reservations included."""
        return round(self._spent(_keys(now)[1]))

    def _spent(self, key: str) -> float:
        row = self._reader().execute("SELECT reserved + settled FROM spending WHERE day = ?", (key,)).fetchone()
        return 0.0 if row is None else float(row[0])


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def _keys(now: float) -> tuple[str, str]:
    """Under which a day's dollars and its tokens are kept; both are older than the next day's to a comparison."""
    day = _day(now)
    return day, f"{day} tokens"


# -- inside the transactions of others ---------------------------------------------------------------------------


def add(
    connection: sqlite3.Connection,
    jobs: Sequence[JobRow],
    traces: Mapping[bytes, int],
    redecided: Collection[bytes],
    now: float,
    fresh: Collection[bytes] = frozenset(),
    ended_at: float | None = None,
) -> None:
    """New jobs; those of traces that were ``redecided`` and are no longer wanted are cancelled unless leased.
    ``traces``: the numbers of all these traces; of ``fresh`` ones there can be neither jobs nor results yet. ``now`` is
    of the running clock, ``ended_at`` of the calendar."""
    wanted = {job.id for job in jobs}
    for trace_id in redecided:
        rows = connection.execute("SELECT id, no FROM jobs WHERE trace = ? AND state = 'due'", (traces[trace_id],))
        connection.executemany(
            "UPDATE jobs SET state = 'cancelled', why = 'superseded', ended_at = ? WHERE no = ?",
            [(now if ended_at is None else ended_at, no) for id_, no in rows.fetchall() if id_ not in wanted],
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
    found: set[str] = set()
    for marks, group in numbers.batched(traces):
        found.update(row[0] for row in connection.execute(f"SELECT id FROM {where} IN ({marks})", group))  # noqa: S608
    return found


def _blocks(connection: sqlite3.Connection) -> str:
    return numbers.blocks(connection, "jobs", _BLOCK_BITS)


def end(connection: sqlite3.Connection, ends: Sequence[JobEnd], now: float) -> None:
    """Ends jobs, for good or until somebody retries them."""
    among = _blocks(connection) if ends else ""
    connection.executemany(
        f"UPDATE jobs SET state = ?, why = ?, error = ?, ended_at = ? WHERE {_BY_ID} AND state = 'leased'",  # noqa: S608
        [(each.state, each.why, each.error[:500], now, among, each.id) for each in ends],
    )


def forget(connection: sqlite3.Connection, before: float) -> None:
    """Drops ended jobs and verdicts from before a time, and all days of spending but the newest."""
    connection.execute("DELETE FROM jobs WHERE ended_at < ? AND state IN ('done', 'dead', 'cancelled')", (before,))
    connection.execute("DELETE FROM verdicts WHERE created_at < ?", (before,))
    connection.execute(
        "DELETE FROM spending WHERE day NOT IN (SELECT day FROM spending ORDER BY day DESC LIMIT ?)", _DAYS
    )


# -- by hand -----------------------------------------------------------------------------------------------------


def listed(connection: sqlite3.Connection, state: str | None, limit: int) -> Iterator[Job]:
    """Jobs, newest first, of one state or all."""
    rows = connection.execute(
        f"SELECT {_JOB} FROM jobs WHERE ? IS NULL OR state = ? ORDER BY created_at DESC LIMIT ?",  # noqa: S608
        (state, state, limit),
    )
    yield from (Job(*row) for row in rows)


def found(connection: sqlite3.Connection, start: str) -> list[Job]:
    """The jobs whose id begins with ``start``."""
    rows = connection.execute(
        f"SELECT {_JOB} FROM jobs WHERE substr(id, 1, ?) = ? LIMIT 20",  # noqa: S608
        (len(start), start),
    )
    return [Job(*row) for row in rows]


def retry(connection: sqlite3.Connection, job_ids: Sequence[str], now: float) -> int:
    """Makes dead jobs due again, with all their attempts; returns how many."""
    among = _blocks(connection)
    return sum(
        connection.execute(
            f"""UPDATE jobs SET state = 'due', due_at = ?, created_at = ?, attempts = 0, crashes = 0, why = '',
                ended_at = NULL WHERE {_BY_ID} AND state = 'dead'""",  # noqa: S608
            (now, now, among, job_id),
        ).rowcount
        for job_id in job_ids
    )
