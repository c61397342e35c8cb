"""The schedules that start runs."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import astuple, dataclass

from pandaeval_collector.store.runs import MOST_WAITING, RUN, FullError, RunRow, queued
from pandaeval_collector.store.table import StoreTable, insert, written


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule. ``fired_at``: Unix seconds. ``seen``: store calendar time up to which its runs cover decisions."""

    id: str
    cron: str
    created_at: float
    fired_at: float
    seen: float
    body: bytes


_SCHEDULE = ", ".join(ScheduleRow.__dataclass_fields__)


class Schedules(StoreTable):
    def all(self) -> list[ScheduleRow]:
        rows = self._rows(f"SELECT {_SCHEDULE} FROM schedules ORDER BY created_at, id")  # noqa: S608
        return [ScheduleRow(*row) for row in rows]

    def newest_run(self, id_: str) -> RunRow | None:
        row = self._row(f"SELECT {RUN} FROM runs WHERE schedule = ? ORDER BY no DESC LIMIT 1", id_)  # noqa: S608
        return None if row is None else RunRow(*row)

    @written
    def add(self, connection: sqlite3.Connection, cron: str, body: bytes, now: float) -> ScheduleRow:
        """Add a schedule for decisions from ``now`` (Unix seconds). Raises :class:`FullError`."""
        (kept,) = connection.execute("SELECT count(*) FROM schedules").fetchone()
        if kept >= MOST_WAITING:
            raise FullError(f"there are {kept} schedules already: remove some")
        row = ScheduleRow(secrets.token_hex(4), cron, now, now, self._clock.calendar(), body)
        insert(connection, f"schedules ({_SCHEDULE})", [astuple(row)])
        return row

    @written
    def remove(self, connection: sqlite3.Connection, id_: str) -> int:
        """Delete a schedule, but not its runs. Returns 0 for none."""
        return connection.execute("DELETE FROM schedules WHERE id = ?", (id_,)).rowcount

    @written
    def fire(self, connection: sqlite3.Connection, id_: str, body: bytes, now: float, until: float) -> RunRow | None:
        """Queue a run of traces decided since the last run, up to ``until`` (store calendar).

        Returns ``None`` for a removed schedule.
        """
        statement = "UPDATE schedules SET fired_at = ?, seen = ? WHERE id = ?"
        if not connection.execute(statement, (now, until, id_)).rowcount:
            return None
        return queued(connection, body, until, schedule=id_)
