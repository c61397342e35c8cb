"""The schedules in the store, which start runs."""

from __future__ import annotations

import secrets
import sqlite3
from concurrent.futures import Future
from dataclasses import astuple, dataclass

from pandaeval_collector.store.runs import MOST_WAITING, RUN, FullError, RunRow, queued
from pandaeval_collector.store.table import StoreTable


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule. ``fired_at``: Unix seconds; ``seen``: up to when its runs cover decisions, by the store's
    calendar."""

    id: str
    cron: str
    paused: bool
    created_at: float
    fired_at: float
    seen: float
    body: bytes


_SCHEDULE = ", ".join(ScheduleRow.__dataclass_fields__)


class Schedules(StoreTable):
    """The schedules of one store: when they fired last, and up to when decisions are in a run of theirs."""

    def all(self) -> list[ScheduleRow]:
        """Returns all schedules, in order of creation."""
        rows = self._rows(f"SELECT {_SCHEDULE} FROM schedules ORDER BY created_at, id")  # noqa: S608
        return [ScheduleRow(id_, cron, bool(paused), *rest) for id_, cron, paused, *rest in rows]

    def find(self, id_: str) -> ScheduleRow | None:
        """The schedule of an id."""
        return next((row for row in self.all() if row.id == id_), None)

    def newest_run(self, id_: str) -> RunRow | None:
        """Returns the run that a schedule started last."""
        row = self._row(f"SELECT {RUN} FROM runs WHERE schedule = ? ORDER BY no DESC LIMIT 1", id_)  # noqa: S608
        return None if row is None else RunRow(*row)

    def add(self, cron: str, body: bytes, now: float) -> Future[ScheduleRow]:
        """Adds a schedule, whose first run is about what is decided from now on. ``now``: Unix seconds. Raises
        :class:`FullError` where there are too many."""
        row = ScheduleRow(secrets.token_hex(4), cron, False, now, now, self._clock.calendar(), body)

        def work(connection: sqlite3.Connection) -> ScheduleRow:
            (kept,) = connection.execute("SELECT count(*) FROM schedules").fetchone()
            if kept >= MOST_WAITING:
                raise FullError(f"there are {kept} schedules already: remove some")
            connection.execute(
                f"INSERT INTO schedules ({_SCHEDULE}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                astuple(row),
            )
            return row

        return self._writer.submit(work)

    def remove(self, id_: str) -> Future[int]:
        """Deletes a schedule and keeps its runs. The future holds 0 where there was none."""
        return self._writer.execute("DELETE FROM schedules WHERE id = ?", id_)

    def pause(self, id_: str, paused: bool, now: float) -> Future[int]:
        """Pauses a schedule or lets it go on: what came meanwhile is then in its next run, at its next time after
        ``now``. The future holds 0 where there is no such schedule."""
        statement = "UPDATE schedules SET paused = ?, fired_at = CASE WHEN ? THEN fired_at ELSE ? END WHERE id = ?"
        return self._writer.execute(statement, paused, paused, now, id_)

    def fire(self, id_: str, body: bytes, now: float, until: float) -> Future[RunRow | None]:
        """Queues a run of what was decided since the schedule fired last, up to ``until`` (in the store's calendar),
        and notes that, in one transaction. ``body``: what is asked for. The future holds ``None`` for a schedule that
        was removed."""

        def work(connection: sqlite3.Connection) -> RunRow | None:
            statement = "UPDATE schedules SET fired_at = ?, seen = ? WHERE id = ?"
            if not connection.execute(statement, (now, until, id_)).rowcount:
                return None
            return queued(connection, body, until, schedule=id_)

        return self._writer.submit(work)
