"""How far each partition of a log was read, in the same transaction as the spans that were read."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from pandaeval_collector.store.numbers import batched
from pandaeval_collector.store.table import StoreTable

SPANS, MEMBERS = "log", "member_log"
"""The logs that a store may read: what its tables are called, and the key of what is known of it."""


@dataclass(slots=True)
class Extent:
    """Where the messages about a trace lie in its partition: the offsets of the first and the last that were read.
    ``elsewhere``: another collector decided the trace, and its further messages are skipped."""

    first: int
    last: int
    elsewhere: bool = False


@dataclass(slots=True)
class Consumed:
    """What was read of one partition: ``next`` is the offset after the last message. Below ``settled_below``, other
    collectors have decided what they read. ``extents``: those of the traces whose messages may be needed again."""

    partition: int
    next: int
    settled_below: int = 0
    extents: dict[bytes, Extent] = field(default_factory=dict)


class ConsumedTables(StoreTable):
    """The tables of how far a log was read."""

    _log = SPANS

    def open(self, log: str) -> Future[None]:
        """Deletes what the tables hold of another log than ``log`` (cluster, topic and group): its offsets mean nothing
        in this one."""

        def work(connection: sqlite3.Connection) -> None:
            known = connection.execute("SELECT value FROM meta WHERE key = ?", (self._log,)).fetchone()
            if known != (log,):
                connection.execute(f"DELETE FROM {self._log}_partitions")  # noqa: S608
                connection.execute(f"DELETE FROM {self._log}_traces")  # noqa: S608
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._log, log))

        return self._writer.submit(work)

    def load(self) -> dict[int, Consumed]:
        """Returns what was read of each partition, by partition. ``next`` is -1 for one that was released."""
        rows = self._rows(f"SELECT partition, next, settled_below FROM {self._log}_partitions")  # noqa: S608
        found = {row[0]: Consumed(*row) for row in rows}
        rows = self._rows(f"SELECT partition, trace_id, first, last, elsewhere FROM {self._log}_traces")  # noqa: S608
        for partition, trace_id, first, last, elsewhere in rows:
            read = found.setdefault(partition, Consumed(partition, -1))
            read.extents[trace_id] = Extent(first, last, bool(elsewhere))
        return found

    def note(self, read: Sequence[Consumed]) -> Future[None]:
        """Stores how far partitions were read, where no span came with it."""
        return self._writer.submit(lambda connection: write(connection, read, self._log))

    def forget(self, partition: int, before: int) -> Future[int]:
        """Deletes the extents of traces that end before an offset."""
        statement = f"DELETE FROM {self._log}_traces WHERE partition = ? AND last < ?"  # noqa: S608
        return self._writer.execute(statement, partition, before)

    def release(self, partition: int, keep: Collection[bytes] = ()) -> Future[None]:
        """Deletes what is known of a partition, except for the extents of the traces to ``keep``."""

        def work(connection: sqlite3.Connection) -> None:
            query = f"SELECT trace_id FROM {self._log}_traces WHERE partition = ?"  # noqa: S608
            rows = connection.execute(query, (partition,)).fetchall()
            gone = [(partition, trace_id) for (trace_id,) in rows if trace_id not in keep]
            connection.executemany(f"DELETE FROM {self._log}_traces WHERE partition = ? AND trace_id = ?", gone)  # noqa: S608
            connection.execute(f"DELETE FROM {self._log}_partitions WHERE partition = ?", (partition,))  # noqa: S608

        return self._writer.submit(work)

    def park(self, trace_ids: Collection[bytes]) -> Future[int]:
        """Has due jobs about these traces wait until :meth:`unpark`. The future holds how many."""
        return self._jobs("due", ("parked", "", None), trace_ids)

    def unpark(self, trace_ids: Collection[bytes]) -> Future[int]:
        """Makes parked jobs about these traces due again."""
        return self._jobs("parked", ("due", "", None), trace_ids)

    def give_up(self, trace_ids: Collection[bytes], now: float) -> Future[int]:
        """Cancels parked jobs about these traces: another collector did them. ``now``: of the store's calendar."""
        return self._jobs("parked", ("cancelled", "elsewhere", now), trace_ids)

    def unjudged(self) -> set[bytes]:
        """Returns the ids of the traces with a job that has not ended."""
        query = "SELECT DISTINCT trace_id FROM jobs WHERE state IN ('due', 'leased', 'parked')"
        return {trace_id for (trace_id,) in self._rows(query)}

    def _jobs(self, state: str, becomes: tuple[str, str, float | None], trace_ids: Collection[bytes]) -> Future[int]:
        update = "UPDATE jobs SET state = ?, why = ?, ended_at = ? WHERE state = ? AND trace_id IN"

        def work(connection: sqlite3.Connection) -> int:
            return sum(
                connection.execute(f"{update} ({marks})", (*becomes, state, *group)).rowcount
                for marks, group in batched(trace_ids)
            )

        return self._writer.submit(work)


class ConsumedMembers(ConsumedTables):
    """The tables of the topic of members, where a session's id as UTF-8 stands in the place of a trace's."""

    _log = MEMBERS

    def unjudged(self) -> set[bytes]:
        """Returns the ids of the sessions with a job that has not ended."""
        query = """SELECT DISTINCT json_extract(CAST(body AS TEXT), '$.session') FROM jobs
                   WHERE state IN ('due', 'leased') AND metric LIKE 'session.%'"""
        return {str(session).encode() for (session,) in self._rows(query)}

    def _jobs(self, state: str, becomes: tuple[str, str, float | None], trace_ids: Collection[bytes]) -> Future[int]:
        """Changes no job: the verdicts of jobs about sessions have the same ids everywhere."""
        return self._writer.submit(lambda connection: 0)


def write(connection: sqlite3.Connection, read: Iterable[Consumed], log: str = SPANS) -> None:
    """Notes what was read, inside the transaction that stores it."""
    for each in read:
        connection.execute(
            f"INSERT OR REPLACE INTO {log}_partitions VALUES (?, ?, ?)",  # noqa: S608
            (each.partition, each.next, each.settled_below),
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {log}_traces VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            [(each.partition, id_, e.first, e.last, e.elsewhere) for id_, e in each.extents.items()],
        )
