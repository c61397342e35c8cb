"""Schedules of evaluation runs: when they fired last, and up to when decisions are in a run of theirs."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.run_rows import MOST_WAITING, RUN, FullError, RunRow, ScheduleRow
from pandaeval_collector.store.run_tables import insert
from pandaeval_collector.store.writer import Writer

_COLUMNS = "id, cron, paused, created_at, fired_at, seen, body"


class ScheduleReads:
    """Reads the schedules of one store. Safe from any thread that ``reader`` has a connection for."""

    def __init__(self, reader: Callable[[], sqlite3.Connection]) -> None:
        self._reader = reader

    def all(self) -> list[ScheduleRow]:
        """Returns all schedules, in order of creation."""
        rows = self._reader().execute(f"SELECT {_COLUMNS} FROM schedules ORDER BY created_at, id")  # noqa: S608
        return [_row(row) for row in rows]

    def find(self, id_: str) -> ScheduleRow | None:
        """The schedule of an id."""
        row = self._reader().execute(f"SELECT {_COLUMNS} FROM schedules WHERE id = ?", (id_,)).fetchone()  # noqa: S608
        return None if row is None else _row(row)

    def newest_run(self, id_: str) -> RunRow | None:
        """Returns the run that a schedule started last."""
        query = f"SELECT {RUN} FROM runs WHERE schedule = ? ORDER BY no DESC LIMIT 1"  # noqa: S608
        row = self._reader().execute(query, (id_,)).fetchone()
        return None if row is None else RunRow(*row)


class Schedules(ScheduleReads):
    """The schedules of one store. Reading is safe from any thread, writing happens on the store's writer."""

    def __init__(self, writer: Writer, reader: Callable[[], sqlite3.Connection], clock: StoreClock) -> None:
        super().__init__(reader)
        self._writer, self._clock = writer, clock

    def add(self, cron: str, body: bytes, now: float) -> Future[ScheduleRow]:
        """Adds a schedule, whose first run is about what is decided from now on. ``now``: Unix seconds. Raises
        :class:`FullError` where there are too many."""

        def work(connection: sqlite3.Connection) -> ScheduleRow:
            (kept,) = connection.execute("SELECT count(*) FROM schedules").fetchone()
            if kept >= MOST_WAITING:
                raise FullError(f"there are {kept} schedules already: remove some")
            return _row(
                connection.execute(
                    f"INSERT INTO schedules VALUES (?, ?, 0, ?, ?, ?, ?) RETURNING {_COLUMNS}",  # noqa: S608
                    (secrets.token_hex(4), cron, now, now, self._clock.calendar(), body),
                ).fetchone()
            )

        return self._writer.submit(work)

    def remove(self, id_: str) -> Future[bool]:
        """Deletes a schedule and keeps its runs. The future holds whether there was one."""
        return self._writer.submit(
            lambda connection: connection.execute("DELETE FROM schedules WHERE id = ?", (id_,)).rowcount > 0
        )

    def pause(self, id_: str, paused: bool, now: float) -> Future[bool]:
        """Pauses a schedule or lets it go on: what came meanwhile is then in its next run, at its next time after
        ``now``. The future holds whether there is such a schedule."""
        statement = "UPDATE schedules SET paused = ?, fired_at = CASE WHEN ? THEN fired_at ELSE ? END WHERE id = ?"
        return self._writer.submit(
            lambda connection: connection.execute(statement, (paused, paused, now, id_)).rowcount > 0
        )

    def fire(self, id_: str, body: bytes, now: float, until: float) -> Future[RunRow | None]:
        """Queues a run of what was decided since the schedule fired last, up to ``until`` (in the store's calendar),
        and notes that, in one transaction. ``body``: what is asked for. The future holds ``None`` for a schedule that
        was removed."""

        def work(connection: sqlite3.Connection) -> RunRow | None:
            statement = "UPDATE schedules SET fired_at = ?, seen = ? WHERE id = ?"
            if not connection.execute(statement, (now, until, id_)).rowcount:
                return None
            return insert(connection, body, until, schedule=id_)

        return self._writer.submit(work)


def _row(row: tuple[str, str, int, float, float, float, bytes]) -> ScheduleRow:
    return ScheduleRow(row[0], row[1], bool(row[2]), *row[3:])
