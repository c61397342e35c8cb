"""The read positions of log partitions, stored with the spans."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from pandaeval_collector.store.table import StoreTable, written

SPANS, MEMBERS = "log", "member_log"
"""The logs that a store can read. Each name is the prefix of the log's tables, and its key in ``meta``."""
_LISTED = "(SELECT value FROM json_each(?))"


@dataclass(slots=True)
class Extent:
    """The first and last offsets of a trace's messages. ``elsewhere``: another collector decided the trace."""

    first: int
    last: int
    elsewhere: bool = False


@dataclass(slots=True)
class Consumed:
    """A partition's read state.

    ``next``: next offset. ``settled_below``: other collectors decided earlier messages. ``extents``: of traces that may
    be read again.
    """

    partition: int
    next: int
    settled_below: int = 0
    extents: dict[bytes, Extent] = field(default_factory=dict)


class ConsumedTables(StoreTable):
    _log = SPANS

    @written
    def open(self, connection: sqlite3.Connection, log: str) -> None:
        """Delete the rows of logs other than ``log`` (cluster, topic and group)."""
        known = connection.execute("SELECT value FROM meta WHERE key = ?", (self._log,)).fetchone()
        if known != (log,):
            connection.execute(f"DELETE FROM {self._log}_partitions")  # noqa: S608
            connection.execute(f"DELETE FROM {self._log}_traces")  # noqa: S608
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._log, log))

    def load(self) -> dict[int, Consumed]:
        """Return the state by partition. ``next`` is -1 for a released partition."""
        rows = self._rows(f"SELECT partition, next, settled_below FROM {self._log}_partitions")  # noqa: S608
        partitions = {row[0]: Consumed(*row) for row in rows}
        rows = self._rows(f"SELECT partition, trace_id, first, last, elsewhere FROM {self._log}_traces")  # noqa: S608
        for partition, trace_id, first, last, elsewhere in rows:
            read = partitions.setdefault(partition, Consumed(partition, -1))
            read.extents[trace_id] = Extent(first, last, bool(elsewhere))
        return partitions

    @written
    def note(self, connection: sqlite3.Connection, read: Sequence[Consumed]) -> None:
        write(connection, read, self._log)

    @written
    def forget(self, connection: sqlite3.Connection, partition: int, before: int) -> None:
        statement = f"DELETE FROM {self._log}_traces WHERE partition = ? AND last < ?"  # noqa: S608
        connection.execute(statement, (partition, before))

    @written
    def release(self, connection: sqlite3.Connection, partition: int, keep: Collection[bytes] = ()) -> None:
        """Delete a partition's rows, except extents of the traces to ``keep``."""
        delete = f"DELETE FROM {self._log}_traces WHERE partition = ? AND hex(trace_id) NOT IN {_LISTED}"  # noqa: S608
        connection.execute(delete, (partition, _hex_list(keep)))
        connection.execute(f"DELETE FROM {self._log}_partitions WHERE partition = ?", (partition,))  # noqa: S608

    @written
    def park(self, connection: sqlite3.Connection, trace_ids: Collection[bytes]) -> int:
        return self._change_jobs(connection, "due", ("parked", "", None), trace_ids)

    @written
    def unpark(self, connection: sqlite3.Connection, trace_ids: Collection[bytes]) -> int:
        return self._change_jobs(connection, "parked", ("due", "", None), trace_ids)

    @written
    def give_up(self, connection: sqlite3.Connection, trace_ids: Collection[bytes], now: float) -> int:
        """Cancel parked jobs if another collector has done them. ``now``: store calendar."""
        return self._change_jobs(connection, "parked", ("cancelled", "elsewhere", now), trace_ids)

    def unjudged(self) -> set[bytes]:
        query = "SELECT DISTINCT trace_id FROM jobs WHERE state IN ('due', 'leased', 'parked')"
        return {trace_id for (trace_id,) in self._rows(query)}

    def _change_jobs(
        self,
        connection: sqlite3.Connection,
        state: str,
        becomes: tuple[str, str, float | None],
        trace_ids: Collection[bytes],
    ) -> int:
        update = f"UPDATE jobs SET state = ?, why = ?, ended_at = ? WHERE state = ? AND hex(trace_id) IN {_LISTED}"  # noqa: S608
        return connection.execute(update, (*becomes, state, _hex_list(trace_ids))).rowcount


class ConsumedMembers(ConsumedTables):
    """The same tables for the topic of members. Session ids (UTF-8) replace trace ids."""

    _log = MEMBERS

    def unjudged(self) -> set[bytes]:
        query = """SELECT DISTINCT json_extract(CAST(body AS TEXT), '$.session') FROM jobs
                   WHERE state IN ('due', 'leased') AND metric LIKE 'session.%'"""
        return {str(session).encode() for (session,) in self._rows(query)}

    def _change_jobs(self, *_: object) -> int:
        """Change no job, because session verdicts have equal ids everywhere."""
        return 0


def write(connection: sqlite3.Connection, read: Iterable[Consumed], log: str = SPANS) -> None:
    for partition in read:
        connection.execute(
            f"INSERT OR REPLACE INTO {log}_partitions VALUES (?, ?, ?)",  # noqa: S608
            (partition.partition, partition.next, partition.settled_below),
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {log}_traces VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            [(partition.partition, id_, e.first, e.last, e.elsewhere) for id_, e in partition.extents.items()],
        )


def _hex_list(ids: Iterable[bytes]) -> str:
    return orjson.dumps([id_.hex().upper() for id_ in ids]).decode()
