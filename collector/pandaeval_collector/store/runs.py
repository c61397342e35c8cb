"""Evaluation runs in the store: what was asked for, which traces it is about, how far it came, what it found.

A run is ``queued``, ``running``, ``done`` or ``cancelled``, or ``standing``: it goes on beside live judging. Each of
its traces (an item) is ``pending``, ``done`` or ``failed``. The results of a batch and the states of its items are one
transaction: a crash repeats a batch, and no item is lost or has two results.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from pandaeval_collector.store import numbers
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.run_rows import ENDED, RUN, KeyTakenError, RunRow
from pandaeval_collector.store.run_writes import insert
from pandaeval_collector.store.wanted import Wanted, conditions
from pandaeval_collector.store.writer import Writer

_PAGE = 2000
"""So many traces are looked through in one read when a run is planned."""


class Runs:
    """The runs of one store. Reading is safe from any thread, writing happens on the store's writer."""

    def __init__(self, writer: Writer, reader: Callable[[], sqlite3.Connection], clock: StoreClock) -> None:
        self._writer, self._reader, self._clock = writer, reader, clock

    # -- asked for -----------------------------------------------------------------------------------------------

    def create(self, body: bytes, key: str | None = None) -> Future[tuple[RunRow, bool]]:
        """Queues a run over the traces that there are by now. The future holds it, and whether it is new: with a
        ``key`` that was given before it is the earlier one. Raises :class:`KeyTakenError` where that asked for
        something else."""

        def work(connection: sqlite3.Connection) -> tuple[RunRow, bool]:
            row = connection.execute(f"SELECT {RUN} FROM runs WHERE key = ?", (key,)).fetchone() if key else None  # noqa: S608
            if row is None:
                return insert(connection, body, self._clock.calendar(), key=key), True
            if bytes(row[-1]) != body:
                raise KeyTakenError("this Idempotency-Key asked for another run before: give a new one")
            return RunRow(*row), False

        return self._writer.submit(work)

    def find(self, id_: str) -> RunRow | None:
        """The run of an id."""
        row = self._reader().execute(f"SELECT {RUN} FROM runs WHERE id = ?", (id_,)).fetchone()  # noqa: S608
        return None if row is None else RunRow(*row)

    def newest(self, before: int | None = None, limit: int = 50) -> list[RunRow]:
        """Runs, newest first. ``before``: the number at which the last page ended."""
        rows = self._reader().execute(
            f"SELECT {RUN} FROM runs WHERE no < ? ORDER BY no DESC LIMIT ?",  # noqa: S608
            (1 << 62 if before is None else before, limit),
        )
        return [RunRow(*row) for row in rows]

    def stand(self, key: str | None, body: bytes) -> Future[int | None]:
        """Has the run of a key stand, a new one if there is none, and ends all others that do. The future holds its
        number, ``None`` without a key."""

        def work(connection: sqlite3.Connection) -> int | None:
            now = self._clock.calendar()
            connection.execute(
                "UPDATE runs SET state = 'done', ended_at = ? WHERE state = 'standing' AND key IS NOT ?", (now, key)
            )
            if key is None:
                return None
            row = connection.execute("SELECT no FROM runs WHERE key = ?", (key,)).fetchone()
            no = int(row[0]) if row is not None else insert(connection, body, now, key=key).no
            connection.execute(
                """UPDATE runs SET state = 'standing', started_at = coalesce(started_at, ?), ended_at = NULL,
                   planned = upto, body = ? WHERE no = ?""",
                (now, body, no),
            )
            return no

        return self._writer.submit(work)

    def placed(self, trace_id: bytes) -> tuple[int, int] | None:
        """The number of a listed trace, and that of its session (0: none)."""
        reader = self._reader()
        no = numbers.of_traces(reader, [trace_id]).get(trace_id)
        row = reader.execute("SELECT no, session FROM listed WHERE no = ?", (no,)).fetchone()
        return None if row is None else (row[0], row[1])

    def cancel(self, id_: str) -> Future[bool]:
        """The future holds whether there was anything to cancel."""
        return self._moved(
            "UPDATE runs SET state = 'cancelled', ended_at = ? WHERE id = ? AND state IN ('queued', 'running')", id_
        )

    def retry(self, id_: str) -> Future[bool]:
        """Queues a run that ended again, with the traces that failed and those that it did not come to. The future
        holds whether there are any."""

        def work(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                f"SELECT no, total - done, planned < upto FROM runs WHERE id = ? AND state IN {ENDED}",  # noqa: S608
                (id_,),
            ).fetchone()
            if row is None or not (row[1] or row[2]):
                return False
            connection.execute(
                "UPDATE run_items SET state = 'pending', why = '' WHERE run = ? AND state = 'failed'", (row[0],)
            )
            connection.execute(
                "UPDATE runs SET state = 'queued', failed = 0, ended_at = NULL, error = '' WHERE no = ?", (row[0],)
            )
            return True

        return self._writer.submit(work)

    # -- under way -----------------------------------------------------------------------------------------------

    def next(self) -> RunRow | None:
        """The run to go on with: one that was begun, else the oldest that is queued."""
        for state in ("running", "queued"):
            row = (
                self._reader()
                .execute(f"SELECT {RUN} FROM runs WHERE state = ? ORDER BY no LIMIT 1", (state,))  # noqa: S608
                .fetchone()
            )
            if row is not None:
                return RunRow(*row)
        return None

    def begin(self, no: int) -> Future[None]:
        """A queued run is running."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                """UPDATE runs SET state = 'running', started_at = coalesce(started_at, ?)
                   WHERE no = ? AND state = 'queued'""",
                (self._clock.calendar(), no),
            )

        return self._writer.submit(work)

    def end(self, no: int, error: str = "") -> Future[None]:
        """A run that was not cancelled is done; ``error``: why it could not go on."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE runs SET state = 'done', ended_at = ?, error = ? WHERE no = ? AND state != 'cancelled'",
                (self._clock.calendar(), error[:500], no),
            )

        return self._writer.submit(work)

    def chosen(
        self, wanted: Wanted, after: int, upto: int, decided: tuple[float, float] | None = None
    ) -> tuple[list[tuple[int, int, bytes, str | None]], int]:
        """Wanted traces with numbers above ``after``, a page of them, as (number, number of the session, id, id of the
        session), and the number up to which all were looked at. ``decided``: in this time of the calendar. Blocks."""
        where, values = conditions(wanted)
        if decided is not None:
            where.append("t.decided_at > ? AND t.decided_at <= ?")
            values += decided
        among = " AND ".join(["l.no > ?", "l.no <= ?", *where])
        reader = self._reader()
        last = reader.execute(
            "SELECT max(no) FROM (SELECT no FROM listed WHERE no > ? AND no <= ? ORDER BY no LIMIT ?)",
            (after, upto, _PAGE),
        ).fetchone()[0]
        if last is None:
            return [], upto
        rows = reader.execute(
            f"""SELECT l.no, l.session, t.trace_id, s.session_id FROM listed AS l JOIN traces AS t ON t.no = l.no
                LEFT JOIN sessions AS s ON s.no = l.session WHERE {among} ORDER BY l.no""",  # noqa: S608
            (after, last, *values),
        )
        return rows.fetchall(), int(last)

    def plan(self, no: int, items: Sequence[tuple[int, int]], upto: int, sessions: bool) -> Future[None]:
        """Adds (trace, session) to a run, which is planned ``upto`` a number now. ``sessions``: with all other traces
        of these sessions that there were when it was asked for."""

        def work(connection: sqlite3.Connection) -> None:
            added = connection.executemany(
                "INSERT OR IGNORE INTO run_items (run, no, grp, state) VALUES (?, ?, ?, 'pending')",
                [(no, trace, session) for trace, session in items],
            ).rowcount
            if sessions:
                added = max(0, added) + sum(
                    connection.execute(
                        """INSERT OR IGNORE INTO run_items (run, no, grp, state)
                           SELECT ?, no, session, 'pending' FROM listed
                           WHERE session = ? AND no > 0 AND no <= (SELECT upto FROM runs WHERE no = ?)""",
                        (no, session, no),
                    ).rowcount
                    for session in {session for _, session in items if session}
                )
            connection.execute("UPDATE runs SET total = total + ?, planned = ? WHERE no = ?", (max(0, added), upto, no))

        return self._writer.submit(work)

    def pending(self, no: int, limit: int) -> list[tuple[int, int]]:
        """About ``limit`` items (trace, session) that are yet to be done; all of a session come together."""
        reader, query = self._reader(), "SELECT no, grp FROM run_items WHERE run = ? AND state = 'pending'"
        rows: list[tuple[int, int]] = reader.execute(f"{query} ORDER BY grp, no LIMIT ?", (no, limit + 1)).fetchall()
        if len(rows) <= limit or not rows[-1][1]:
            return rows[:limit]
        last = rows[-1][1]
        whole = [row for row in rows if row[1] != last]
        return whole or reader.execute(f"{query} AND grp = ? ORDER BY no", (no, last)).fetchall()

    # -- what came of it -----------------------------------------------------------------------------------------

    def items(self, no: int, state: str, limit: int) -> list[tuple[str, str]]:
        """(trace id, why) of items in a state."""
        rows = self._reader().execute(
            """SELECT lower(hex(trace_id)), why FROM run_items JOIN traces ON traces.no = run_items.no
               WHERE run = ? AND state = ? LIMIT ?""",
            (no, state, limit),
        )
        return rows.fetchall()

    def results(
        self, no: int, after: int = 0, limit: int = 100, metric: str | None = None
    ) -> tuple[list[bytes], int | None]:
        """JSON objects of results in the order in which they came, and where the next page begins."""
        rows = (
            self._reader()
            .execute(
                """SELECT body, seq FROM run_results WHERE run = ? AND seq > ? AND (? IS NULL OR metric = ?)
               ORDER BY seq LIMIT ?""",
                (no, after, metric, metric, limit + 1),
            )
            .fetchall()
        )
        return [bytes(row[0]) for row in rows[:limit]], rows[limit - 1][1] if len(rows) > limit else None

    def counts(self, no: int) -> dict[tuple[str, str], int]:
        """How many results there are by (metric, outcome)."""
        rows = self._reader().execute(
            "SELECT metric, outcome, count(*) FROM run_results WHERE run = ? GROUP BY metric, outcome", (no,)
        )
        return {(metric, outcome): count for metric, outcome, count in rows}

    def pairs(self, first: int, second: int | None) -> Iterator[tuple[Any, ...]]:
        """(metric, about, session, score, success, by) of one run and the last three of another, for each unit and
        metric that both have a result of; of the live results that stand where ``second`` is ``None``. Reads as it
        goes, on a connection of the calling thread."""
        if second is not None:
            return self._reader().execute(
                """SELECT a.metric, a.about, coalesce(i.grp, 0), a.score, a.success, a.by, b.score, b.success, b.by
                   FROM run_results AS a
                   JOIN run_results AS b ON b.run = ? AND b.metric = a.metric AND b.about = a.about
                   LEFT JOIN run_items AS i ON i.run = a.run AND i.no = a.about
                   WHERE a.run = ? ORDER BY a.metric""",
                (second, first),
            )
        return self._reader().execute(
            """SELECT a.metric, a.about, coalesce(i.grp, 0), a.score, a.success, a.by,
                      json_extract(CAST(b.body AS TEXT), '$.score'), b.success,
                      json_extract(CAST(b.body AS TEXT), '$.evaluator.version') || ' ' ||
                      coalesce(json_extract(CAST(b.body AS TEXT), '$.evaluator.model'), '')
               FROM run_results AS a JOIN results AS b ON b.seq =
                    (SELECT max(seq) FROM results AS r WHERE r.about = a.about AND r.metric = a.metric)
               LEFT JOIN run_items AS i ON i.run = a.run AND i.no = a.about
               WHERE a.run = ? ORDER BY a.metric""",
            (first,),
        )

    def body(self, no: int, metric: str, about: int) -> bytes | None:
        """The JSON object of one result."""
        row = (
            self._reader()
            .execute("SELECT body FROM run_results WHERE run = ? AND metric = ? AND about = ?", (no, metric, about))
            .fetchone()
        )
        return None if row is None else bytes(row[0])

    def _moved(self, statement: str, id_: str) -> Future[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(statement, (self._clock.calendar(), id_)).rowcount > 0

        return self._writer.submit(work)
