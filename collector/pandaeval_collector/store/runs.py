"""Evaluation runs and their items.

After a crash, at most a batch is repeated.

Run states: ``queued``, ``running``, ``done``, ``cancelled``. Item states: ``pending``, ``done``, ``failed``.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.store.listed import Wanted, conditions
from pandaeval_collector.store.table import StoreTable, written

_ENDED = "('done', 'cancelled')"
MOST_WAITING = 100
"""Maximum queued runs, and maximum schedules."""
_PAGE = 2000
"""Traces per read during the planning of a run."""


class FullError(UserError):
    """The limit of runs or schedules is reached."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A stored run.

    Times: store calendar. ``total``, ``done``, ``failed``: traces. ``calls``, ``tokens``, ``cost_usd``: of judges.
    ``body``: request.
    """

    no: int
    id: str
    schedule: str
    state: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    upto: int
    planned: int
    total: int
    done: int
    failed: int
    calls: int
    tokens: int
    cost_usd: float
    error: str
    body: bytes

    @property
    def ended(self) -> bool:
        return self.state in ("done", "cancelled")


RUN = ", ".join(RunRow.__dataclass_fields__)
"""The columns of a run."""


@dataclass(slots=True)
class RunResult:
    """A run's result.

    ``about``: trace number, or below zero of the session. ``by``: metric version, judge or embedder.
    """

    about: int
    metric: str
    outcome: str
    score: float | None
    success: bool | None
    cost_usd: float
    by: str
    body: bytes


@dataclass(slots=True)
class RunBatch:
    """The outcome of a batch. ``items``: traces with failure reason, empty for success."""

    run: int
    items: Sequence[tuple[int, str]]
    results: Sequence[RunResult]
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class RunTable(StoreTable):
    @written
    def create(self, connection: sqlite3.Connection, body: bytes) -> RunRow:
        """Queue a run over the current traces. Raises :class:`FullError`."""
        # Runs of schedules do not count, because each schedule has at most one run at a time.
        query = "SELECT count(*) FROM runs WHERE state = 'queued' AND schedule = ''"
        (waiting,) = connection.execute(query).fetchone()
        if waiting >= MOST_WAITING:
            raise FullError(f"{waiting} runs wait already: cancel some, or come back when they are done")
        return queued(connection, body, self._clock.calendar())

    @written
    def cancel(self, connection: sqlite3.Connection, id_: str) -> int:
        """Cancel a run. Returns 0 if it is over or missing."""
        return connection.execute(
            "UPDATE runs SET state = 'cancelled', ended_at = ? WHERE id = ? AND state IN ('queued', 'running')",
            (self._clock.calendar(), id_),
        ).rowcount

    @written
    def begin(self, connection: sqlite3.Connection, no: int) -> int:
        """Start or continue a run. Returns 0 if it is over."""
        return connection.execute(
            """UPDATE runs SET state = 'running', started_at = coalesce(started_at, ?)
               WHERE no = ? AND state IN ('queued', 'running')""",
            (self._clock.calendar(), no),
        ).rowcount

    @written
    def end(self, connection: sqlite3.Connection, no: int, error: str = "") -> int:
        """Mark a run as done, unless it was cancelled. ``error``: reason for stopping."""
        return connection.execute(
            "UPDATE runs SET state = 'done', ended_at = ?, error = ? WHERE no = ? AND state = 'running'",
            (self._clock.calendar(), error[:500], no),
        ).rowcount

    @written
    def plan(
        self, connection: sqlite3.Connection, no: int, items: Sequence[tuple[int, int]], upto: int, sessions: bool
    ) -> None:
        """Add items (trace, session) up to the number ``upto``. ``sessions``: add these sessions' other traces."""
        _add_items(connection, no, items)
        for session in {session for _, session in items if sessions and session}:
            others = connection.execute(
                """SELECT no, session FROM listed
                   WHERE session = ? AND no > 0 AND no <= (SELECT upto FROM runs WHERE no = ?)""",
                (session, no),
            )
            _add_items(connection, no, others.fetchall())
        connection.execute("UPDATE runs SET planned = ? WHERE no = ?", (upto, no))

    @written
    def judge_again(self, connection: sqlite3.Connection, no: int) -> int:
        """Make ended judge jobs of the units that the run scored due again. Returns their number."""
        now = self._clock.running()
        return connection.execute(
            """UPDATE jobs SET state = 'due', due_at = ?1, created_at = ?1, attempts = 0, crashes = 0, why = '',
                   ended_at = NULL
               WHERE state IN ('done', 'dead') AND no IN (
                   SELECT max(j.no) FROM run_items AS i JOIN jobs AS j ON j.trace = i.no
                   JOIN run_results AS r ON r.run = i.run AND r.metric = j.metric
                       AND r.about = iif(r.about > 0, i.no, -i.grp)
                   WHERE i.run = ?2 AND r.outcome = 'scored' GROUP BY r.metric, r.about)""",
            (now, no),
        ).rowcount

    @written
    def add(self, connection: sqlite3.Connection, batch: RunBatch) -> None:
        add(connection, [batch])

    def next(self) -> RunRow | None:
        return self._first("state = 'running' ORDER BY no") or self._first("state = 'queued' ORDER BY no")

    def chosen(
        self,
        wanted: Wanted,
        after: int,
        upto: int,
        decided: tuple[float, float] | None = None,
        about: Sequence[int] = (),
    ) -> tuple[list[tuple[int, int, bytes, str | None]], int]:
        """Return (number, session number, id, session id) of wanted traces after ``after``, and the last examined
        number. ``decided``: calendar interval. ``about``: only these numbers. Blocks.
        """
        where = conditions(wanted)
        if about:
            ids = orjson.dumps(about).decode()
            among = "IN (SELECT value FROM json_each(?))"
            where = where.also(f"(l.no {among} OR (l.session > 0 AND -l.session {among}))", ids, ids)
        if decided is not None:
            where = where.also("t.decided_at > ? AND t.decided_at <= ?", *decided)
        page = "SELECT no FROM listed WHERE no > ? AND no <= ? ORDER BY no LIMIT ?"
        (last,) = self._row(f"SELECT max(no) FROM ({page})", after, upto, _PAGE)  # noqa: S608
        if last is None:
            return [], upto
        rows = self._rows(
            f"""SELECT l.no, l.session, t.trace_id, s.session_id FROM listed AS l JOIN traces AS t ON t.no = l.no
                LEFT JOIN sessions AS s ON s.no = l.session WHERE l.no > ? AND l.no <= ? AND {where} ORDER BY l.no""",  # noqa: S608
            *(after, last, *where.values),
        )
        return rows, int(last)

    def pending(self, no: int, limit: int) -> list[tuple[int, int]]:
        """Return about ``limit`` pending items (trace, session), whole sessions together."""
        query = "SELECT no, grp FROM run_items WHERE run = ? AND state = 'pending'"
        rows: list[tuple[int, int]] = self._rows(f"{query} ORDER BY grp, no LIMIT ?", no, limit + 1)
        if len(rows) <= limit or not rows[-1][1]:
            return rows[:limit]
        last = rows[-1][1]
        whole = [row for row in rows if row[1] != last]
        return whole or self._rows(f"{query} AND grp = ? ORDER BY no", no, last)

    def find(self, id_: str) -> RunRow | None:
        return self._first("id = ?", id_)

    def ids_from(self, prefix: str, most: int = 5) -> list[str]:
        query = "SELECT id FROM runs WHERE id >= ? AND id < ? LIMIT ?"
        return [id_ for (id_,) in self._rows(query, prefix, prefix + chr(0x10FFFF), most)]

    def newest(self, before: int | None = None, limit: int = 50) -> list[RunRow]:
        """Return runs, newest first. ``before``: end of the last page."""
        query = f"SELECT {RUN} FROM runs WHERE no < ? ORDER BY no DESC LIMIT ?"  # noqa: S608
        return [RunRow(*row) for row in self._rows(query, 1 << 62 if before is None else before, limit)]

    def _first(self, where: str, *values: object) -> RunRow | None:
        row = self._row(f"SELECT {RUN} FROM runs WHERE {where} LIMIT 1", *values)  # noqa: S608
        return None if row is None else RunRow(*row)

    def items(self, no: int, state: str, limit: int) -> list[tuple[str, str]]:
        return self._rows(
            """SELECT lower(hex(trace_id)), why FROM run_items JOIN traces ON traces.no = run_items.no
               WHERE run = ? AND state = ? LIMIT ?""",
            *(no, state, limit),
        )

    def results(
        self, no: int, after: int = 0, limit: int = 100, metric: str | None = None
    ) -> tuple[list[bytes], int | None]:
        """Return a page of JSON results in order of arrival, and the next start."""
        query = """SELECT body, seq FROM run_results WHERE run = ? AND seq > ? AND (? IS NULL OR metric = ?)
                   ORDER BY seq LIMIT ?"""
        rows = self._rows(query, no, after, metric, metric, limit + 1)
        return [bytes(row[0]) for row in rows[:limit]], rows[limit - 1][1] if len(rows) > limit else None

    def counts(self, no: int) -> dict[tuple[str, str], int]:
        query = "SELECT metric, outcome, count(*) FROM run_results WHERE run = ? GROUP BY metric, outcome"
        return {(metric, outcome): count for metric, outcome, count in self._rows(query, no)}

    def pairs(self, first: int, second: int | None) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each metric and unit in both runs. ``second`` of ``None``: live results.

        Columns: metric, about, session, score, success, by; then score, success, by of the second; then the share of
        people who pass the unit.
        """
        if second is None:
            other = """json_extract(CAST(b.body AS TEXT), '$.score'), b.success,
                       json_extract(CAST(b.body AS TEXT), '$.evaluator.version') || ' ' ||
                       coalesce(json_extract(CAST(b.body AS TEXT), '$.evaluator.model'), '')"""
            joined = """results AS b ON b.seq =
                        (SELECT max(seq) FROM results AS r WHERE r.about = a.about AND r.metric = a.metric)"""
        else:
            other = "b.score, b.success, b.by"
            joined = f"run_results AS b ON b.run = {int(second)} AND b.metric = a.metric AND b.about = a.about"
        return self._reader().execute(
            f"""SELECT a.metric, a.about, coalesce(i.grp, 0), a.score, a.success, a.by, {other},
                    (SELECT avg(p.passed) FROM people_labels AS p WHERE p.metric = a.metric AND p.unit = json_extract(
                        CAST(a.body AS TEXT), iif(a.about > 0, '$.trace_id', '$.session_id')))
                FROM run_results AS a JOIN {joined}
                LEFT JOIN run_items AS i ON i.run = a.run AND i.no = a.about
                WHERE a.run = ? ORDER BY a.metric""",  # noqa: S608
            (first,),
        )

    def body(self, no: int, metric: str, about: int) -> bytes | None:
        row = self._row("SELECT body FROM run_results WHERE run = ? AND metric = ? AND about = ?", *(no, metric, about))
        return None if row is None else bytes(row[0])


# Writes about evaluation runs within other transactions.


def add(connection: sqlite3.Connection, batches: Sequence[RunBatch]) -> None:
    """Store batches: the states of items, and results, which replace earlier results."""
    for batch in batches:
        connection.executemany(
            """INSERT OR REPLACE INTO run_results (run, about, metric, outcome, score, success, cost_usd, by, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [(batch.run, *astuple(each)) for each in batch.results],
        )
        changed = {"done": 0, "failed": 0}
        for no, why in batch.items:
            state = "failed" if why else "done"
            changed[state] += connection.execute(
                "UPDATE run_items SET state = ?, why = ? WHERE run = ? AND no = ? AND state = 'pending'",
                (state, why, batch.run, no),
            ).rowcount
        connection.execute(
            """UPDATE runs SET done = done + ?, failed = failed + ?, calls = calls + ?, tokens = tokens + ?,
               cost_usd = cost_usd + ? WHERE no = ?""",
            (changed["done"], changed["failed"], batch.calls, batch.tokens, batch.cost_usd, batch.run),
        )


def _add_items(connection: sqlite3.Connection, run: int, items: Iterable[tuple[int, int]]) -> None:
    added = connection.executemany(
        "INSERT OR IGNORE INTO run_items (run, no, grp, state) VALUES (?, ?, ?, 'pending')",
        [(run, trace, session) for trace, session in items],
    ).rowcount
    connection.execute("UPDATE runs SET total = total + ? WHERE no = ?", (max(0, added), run))


def queued(connection: sqlite3.Connection, body: bytes, now: float, schedule: str = "") -> RunRow:
    """Insert a queued run over the current traces. ``now``: store calendar."""
    (upto,) = connection.execute("SELECT coalesce(max(no), 0) FROM listed").fetchone()
    row = connection.execute(
        f"""INSERT INTO runs (id, schedule, state, created_at, upto, body) VALUES (?, ?, 'queued', ?, ?, ?)
            RETURNING {RUN}""",  # noqa: S608
        (secrets.token_hex(8), schedule, now, max(0, upto), body),
    ).fetchone()
    return RunRow(*row)


def forget(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Delete runs that ended before a time, up to ``limit`` rows. Returns the number of rows."""
    gone = 0
    for (no,) in connection.execute(
        f"SELECT no FROM runs WHERE state IN {_ENDED} AND ended_at < ? LIMIT 10",  # noqa: S608
        (before,),
    ).fetchall():
        for table, key in (("run_results", "seq"), ("run_items", "no")):
            gone += connection.execute(
                f"DELETE FROM {table} WHERE run = ? AND {key} IN (SELECT {key} FROM {table} WHERE run = ? LIMIT ?)",  # noqa: S608
                (no, no, max(0, limit - gone)),
            ).rowcount
        if gone >= limit:
            break
        connection.execute("DELETE FROM runs WHERE no = ?", (no,))
    return gone
