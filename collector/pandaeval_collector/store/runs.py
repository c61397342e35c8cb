"""Evaluation runs in the store: what was asked for, which traces it is about, how far it came, what it found.

A run is ``queued``, ``running``, ``done`` or ``cancelled``, or ``standing``: it goes on beside live judging. Each of
its traces (an item) is ``pending``, ``done`` or ``failed``. The results of a batch and the states of its items are one
transaction: a crash repeats a batch, and no item is lost or has two results.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.run_rows import ENDED, MOST_WAITING, RUN, FullError, KeyTakenError, RunBatch, RunRow
from pandaeval_collector.store.run_tables import RunReads, add, insert
from pandaeval_collector.store.writer import Writer


class RunTable(RunReads):
    """The runs of one store. Reading is safe from any thread, writing happens on the store's writer."""

    def __init__(self, writer: Writer, reader: Callable[[], sqlite3.Connection], clock: StoreClock) -> None:
        super().__init__(reader)
        self._writer, self._clock = writer, clock

    # -- asked for -----------------------------------------------------------------------------------------------

    def create(self, body: bytes, key: str | None = None) -> Future[tuple[RunRow, bool]]:
        """Queues a run over the traces that there are by now. The future holds the run, and whether it is new: a
        ``key`` that was given before returns its run. Raises :class:`KeyTakenError` where that run asked for something
        else, :class:`FullError` where too many wait already."""

        def work(connection: sqlite3.Connection) -> tuple[RunRow, bool]:
            row = connection.execute(f"SELECT {RUN} FROM runs WHERE key = ?", (key,)).fetchone() if key else None  # noqa: S608
            if row is None:
                # Schedules' runs do not count: each has one at a time.
                query = "SELECT count(*) FROM runs WHERE state = 'queued' AND schedule = ''"
                (waiting,) = connection.execute(query).fetchone()
                if waiting >= MOST_WAITING:
                    raise FullError(f"{waiting} runs wait already: cancel some, or come back when they are done")
                return insert(connection, body, self._clock.calendar(), key=key), True
            if bytes(row[-1]) != body:
                raise KeyTakenError("this Idempotency-Key asked for another run before: give a new one")
            return RunRow(*row), False

        return self._writer.submit(work)

    def stand(self, key: str | None, body: bytes) -> Future[int | None]:
        """Makes the run of a key stand beside live judging, a new one if there is none, and ends all others that do.
        The future holds its number, ``None`` without a key."""

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

    def cancel(self, id_: str) -> Future[int]:
        """Cancels a run. The future holds 0 where there was nothing to cancel."""
        return self._writer.execute(
            "UPDATE runs SET state = 'cancelled', ended_at = ? WHERE id = ? AND state IN ('queued', 'running')",
            self._clock.calendar(),
            id_,
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

    def begin(self, no: int) -> Future[int]:
        """Marks a queued run as running."""
        return self._writer.execute(
            "UPDATE runs SET state = 'running', started_at = coalesce(started_at, ?) WHERE no = ? AND state = 'queued'",
            self._clock.calendar(),
            no,
        )

    def end(self, no: int, error: str = "") -> Future[int]:
        """Marks a run as done, unless it was cancelled. ``error``: why it could not go on."""
        return self._writer.execute(
            "UPDATE runs SET state = 'done', ended_at = ?, error = ? WHERE no = ? AND state != 'cancelled'",
            self._clock.calendar(),
            error[:500],
            no,
        )

    def plan(self, no: int, items: Sequence[tuple[int, int]], upto: int, sessions: bool) -> Future[None]:
        """Adds items (trace, session) to a run, which is now planned up to the number ``upto``. ``sessions``: adds the
        other traces of these sessions that there were when the run was asked for."""

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

    def add(self, batch: RunBatch) -> Future[None]:
        """Files a batch, with what it cost."""
        return self._writer.submit(lambda connection: add(connection, [batch]))
