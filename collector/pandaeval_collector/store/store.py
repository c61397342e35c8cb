"""The store: acknowledged means committed, and a restart continues where the last process stopped.

One thread writes (:mod:`commits`); readers have connections of their own. Only the index of open traces lives in
memory; contents stay on disk until their trace is due.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import operator
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.base.runtime.calls import Peer
from pandaeval_collector.store import listed, people, runs
from pandaeval_collector.store.changes import WriteSet, apply
from pandaeval_collector.store.chunks import KeptTraces, StoreFullError, add_chunks, keep_newest, newest_chunk
from pandaeval_collector.store.clock import KEY, StoreClock
from pandaeval_collector.store.commits import Writer
from pandaeval_collector.store.connection import FILE_NAME, Durability, connect, create, note_damage
from pandaeval_collector.store.consumed import Consumed, ConsumedMembers, ConsumedTables
from pandaeval_collector.store.consumed import write as write_consumed
from pandaeval_collector.store.directory import Directory
from pandaeval_collector.store.failures import TriageTable
from pandaeval_collector.store.jobs import Jobs, Spending, Verdicts
from pandaeval_collector.store.outbox import OutboxRows
from pandaeval_collector.store.people import People
from pandaeval_collector.store.reader import StoreReader
from pandaeval_collector.store.responses import BLOCK_BITS, Seen
from pandaeval_collector.store.rows import Chunk, ResultRow
from pandaeval_collector.store.runs import RunTable
from pandaeval_collector.store.schedules import Schedules
from pandaeval_collector.store.series_table import SeriesTable
from pandaeval_collector.store.table import insert
from pandaeval_otel.assembly import Decided

_VACUUM_PAGES = 256
_DAYS = 31
"""Days whose spending is kept."""
_EXPIRE = (
    """DELETE FROM members WHERE session = 0 AND no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < :old
        AND EXISTS (SELECT 1 FROM members WHERE members.no = traces.no AND session = 0) LIMIT :limit)""",
    """DELETE FROM members WHERE no IN
       (SELECT members.no FROM sessions JOIN members ON session = sessions.no
        WHERE open = 0 AND touched_at < :old LIMIT :limit)""",
    """DELETE FROM sessions WHERE no IN
       (SELECT no FROM sessions WHERE open = 0 AND touched_at < :old
        AND NOT EXISTS (SELECT 1 FROM members WHERE session = sessions.no) LIMIT :limit)""",
    """DELETE FROM traces WHERE no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < :old
        AND NOT EXISTS (SELECT 1 FROM members WHERE members.no = traces.no) LIMIT :limit)""",
    # What is about traces and sessions that are deleted: those with numbers below all that are left.
    f"""DELETE FROM responses WHERE (block, continued, digest, no) IN
        (SELECT block, continued, digest, no FROM responses
         WHERE block < coalesce((SELECT min(no) >> {BLOCK_BITS} FROM traces), 1 << 60) LIMIT :limit)""",  # noqa: S608
    """DELETE FROM listed WHERE no IN (SELECT no FROM listed
       WHERE no > 0 AND no < coalesce((SELECT min(no) FROM traces), 1 << 60) LIMIT :limit)""",
    """DELETE FROM listed WHERE no IN (SELECT no FROM listed
       WHERE no < 0 AND no > -coalesce((SELECT min(no) FROM sessions), 1 << 60) LIMIT :limit)""",
)
"""Statements that delete what is older than the retention, a limited number of rows each: senders wait meanwhile."""


class Store:
    """Writes the store in one data directory, which it locks; ``reads`` reads it. Safe from any thread. ``durability``:
    ``full`` survives power cuts, ``normal`` process crashes (the last commits may be lost at a power cut), ``off``
    nothing (for temporary stores). ``max_bytes``: the disk budget of the whole store."""

    def __init__(
        self, path: Path, durability: Durability = "full", max_bytes: int = 10 << 30, clock: StoreClock | None = None
    ) -> None:
        self.path, self.max_bytes, self.clock = path, max_bytes, clock or StoreClock()
        self._file, self._durability = path / FILE_NAME, durability
        self._directory = Directory(path)
        self._decided, self._responses = Seen(), Seen()
        with ExitStack() as undone:
            undone.callback(self._directory.close)
            self.was_damaged = create(self._file, durability)
            self._directory.sync()
            self.reads = StoreReader(path, self._responses)
            undone.callback(self.reads.close)
            self._size = self.reads.used_bytes()
            is_new = not self._resume_clock()
            self._chunk_ids = itertools.count(newest_chunk(self.reads.connection()) + 1)
            self._writer = Writer(
                lambda: connect(self._file, self._durability), lambda error: note_damage(self._file, error)
            )
            self._writer.start()
            undone.pop_all()
        self.waiting, self._is_closed = self._writer.waiting, False
        if is_new:
            self.keep_time()
        self._decided.remember(self.reads.scan, "SELECT trace_id FROM traces INDEXED BY traces_by_id")
        self._responses.remember(self.reads.scan, "SELECT digest FROM responses")
        tables = self.reads.connection, self._writer, self.clock
        self.jobs, self.runs, self.schedules = Jobs(*tables), RunTable(*tables), Schedules(*tables)
        self.verdicts, self.spending, self.people = Verdicts(*tables), Spending(*tables), People(*tables)
        self.triage = TriageTable(*tables)
        self.consumed, self.members_read = ConsumedTables(*tables), ConsumedMembers(*tables)
        self.tally, self.outbox, self.kept = SeriesTable(*tables), OutboxRows(*tables), KeptTraces(*tables)

    def _resume_clock(self) -> bool:
        """Sets the clock to where the store stopped. Returns ``False`` for a new store. If the store is damaged there,
        its time is the machine's."""
        try:
            return self.clock.resume(self.reads.connection())
        except sqlite3.DatabaseError as error:
            if not note_damage(self._file, error):
                raise
            return True

    # -- spans ---------------------------------------------------------------------------------------------------

    def size_bytes(self) -> int:
        """Returns how many bytes of the store's file are in use, free pages not counted."""
        self._size = self.reads.used_bytes()
        return self._size

    def next_chunk_id(self) -> int:
        """Returns the id of the next chunk; ids grow in order of arrival."""
        return next(self._chunk_ids)

    def append(
        self, chunks: Sequence[Chunk], endings: Sequence[str] = (), read: Sequence[Consumed] = ()
    ) -> Future[None]:
        """Stores chunks, the ids of sessions that an application ended with them, and how far the log was read that
        they came from; the future is done when they are committed. Raises :class:`StoreFullError` at once."""
        if self._size >= self.max_bytes and self.size_bytes() >= self.max_bytes:
            raise StoreFullError(
                f"the store holds {self._size >> 20} MiB, its budget store.max_bytes is {self.max_bytes >> 20} MiB"
            )
        return self._writer.submit_item(self._append, (chunks, endings, read))

    def _append(
        self,
        connection: sqlite3.Connection,
        appended: Sequence[tuple[Sequence[Chunk], Sequence[str], Sequence[Consumed]]],
    ) -> None:
        new = [chunk for some, _, _ in appended for chunk in some]
        self._size += add_chunks(connection, new)
        insert(connection, "endings", [(id_,) for _, ended, _ in appended for id_ in ended], verb="INSERT OR IGNORE")
        for _, _, read in appended:
            write_consumed(connection, read)

    def discard(self, ids: Sequence[int]) -> Future[None]:
        """Deletes chunks that brought nothing new to a decided trace."""

        def work(connection: sqlite3.Connection) -> None:
            keep_newest(connection)
            connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in ids])

        return self._writer.submit(work)

    # -- decisions -----------------------------------------------------------------------------------------------

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        """Returns what the store remembers of those of the given traces that were decided before. A filter in memory
        answers for most new traces that they were not."""
        perhaps = [trace_id for trace_id in trace_ids if trace_id in self._decided]
        return self.reads.decided(perhaps) if perhaps else {}

    def commit(self, changes: WriteSet) -> Future[list[ResultRow]]:
        """Applies a decision whole or not at all. The future holds the results that are new, with their ``seq``."""
        perhaps_known = [row.trace_id for row in changes.traces if row.trace_id in self._decided]
        self._decided.add(row.trace_id for row in changes.traces)
        if changes.strangers:
            self._decided.add(changes.strangers)
        self._responses.add(row.digest for row in changes.responses)
        return self._writer.submit(lambda connection: apply(connection, changes, self.clock.now(), perhaps_known))

    def forget_endings(self, session_ids: Sequence[str]) -> Future[int]:
        """Deletes the endings of sessions that are scored for good."""
        ended = orjson.dumps([*session_ids]).decode()
        return self._writer.execute("DELETE FROM endings WHERE session_id IN (SELECT value FROM json_each(?))", ended)

    # -- small facts, and upkeep ---------------------------------------------------------------------------------

    def put(self, key: str, value: str) -> Future[int]:
        """Stores a small fact under a key."""
        return self._writer.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)

    def keep_time(self) -> Future[int]:
        """Stores the store's clock, for the next process to continue."""
        return self.put(KEY, self.clock.kept())

    def forget(
        self,
        late_window_s: float,
        retention_s: float,
        now: float,
        keep: Collection[bytes] = (),
        limit: int = 2000,
        judged_s: float = 30 * 86_400.0,
        unlisted_only: bool = False,
    ) -> Future[int]:
        """Drops raw chunks of traces decided more than ``late_window_s`` seconds ago, ``keep`` excepted, results,
        tombstones and closed sessions older than ``retention_s``, and judged scores older than ``judged_s`` at ``now``
        of the store's calendar; of each kind no more than ``limit``. ``unlisted_only``: raw chunks of listed traces are
        left to :meth:`KeptTraces.keep` until ``retention_s`` is over. The future holds how many went of the kind that
        had most; call again while it is ``limit``."""

        def work(connection: sqlite3.Connection) -> int:
            rows = connection.execute(
                """SELECT trace_id, chunks, no FROM traces WHERE decided_at < ? AND size > 0
                   AND (digest != '' OR decided_at < ?) AND NOT EXISTS
                   (SELECT 1 FROM jobs WHERE jobs.trace = traces.no AND jobs.state IN ('due', 'leased'))
                   AND NOT (? AND decided_at >= ? AND EXISTS (SELECT 1 FROM listed WHERE listed.no = traces.no))
                   ORDER BY decided_at LIMIT ?""",
                (now - late_window_s, now - retention_s, unlisted_only, now - retention_s, limit),
            ).fetchall()
            rows = [row for row in rows if row[0] not in keep]
            if rows:
                keep_newest(connection)
            connection.executemany(
                "DELETE FROM chunks WHERE id = ?", [(chunk,) for _, chunks, _ in rows for chunk in orjson.loads(chunks)]
            )
            connection.executemany(
                "UPDATE traces SET chunks = '[]', known = x'', size = 0 WHERE no = ?", [(row[2],) for row in rows]
            )
            old = now - retention_s
            values = {"old": old, "limit": limit}
            expired = [connection.execute(statement, values).rowcount for statement in _EXPIRE]
            oldest = connection.execute(
                "SELECT seq, created_at FROM results ORDER BY seq LIMIT ?", (limit,)
            )  # in order of age
            results = [seq for seq, _ in itertools.takewhile(lambda row: row[1] < old, oldest)]
            connection.execute("DELETE FROM results WHERE seq <= ?", (results[-1] if results else 0,))
            expired.append(len(results))
            expired.append(listed.forget_pairs(connection, limit))
            expired.append(people.forget(connection, now - judged_s, limit))
            expired.append(runs.forget(connection, old, limit))
            connection.execute("DELETE FROM jobs WHERE ended_at < ? AND state IN ('done', 'dead', 'cancelled')", (old,))
            connection.execute("DELETE FROM verdicts WHERE created_at < ?", (old,))
            newest_days = "SELECT day FROM spending ORDER BY day DESC LIMIT ?"
            connection.execute(f"DELETE FROM spending WHERE day NOT IN ({newest_days})", (_DAYS,))  # noqa: S608
            _give_back_pages(connection)
            return max(len(rows), *expired)

        return self._writer.submit(work)

    def checkpoint(self) -> None:
        """Moves what the write-ahead log holds into the main file, as far as readers allow. Blocks; any thread."""
        with closing(connect(self._file, self._durability)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # -- whether it is well --------------------------------------------------------------------------------------

    @property
    def failing(self) -> str:
        """Why the last transaction could not be written; empty after one that could."""
        return self._writer.failing

    def close(self) -> None:
        """Commits what is queued and unlocks the directory. Safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._decided.stop()
        self._responses.stop()
        self.keep_time()
        self._writer.close()
        self.reads.close()
        self._directory.close()


def _give_back_pages(connection: sqlite3.Connection) -> None:
    """Shrinks the file a little while more than a quarter of it is free: what a busy store frees it soon fills again,
    and giving back a page means to write another one in its place. The pragma gives back one at each step, and
    ``execute`` takes one step."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    for _ in range(min(free - pages // 4, _VACUUM_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")


# The store as the child processes of a collector have it: they read it themselves, and have the front write.


_CALLS = {"spending.reserve", "spending.settle", "verdicts.keep"}
JUDGE_WRITES = frozenset(
    {
        *_CALLS,
        *(f"jobs.{name}" for name in ("lease", "lease_old", "put_back", "release_all")),
        *("put", "spending.settle_all"),
    }
)
"""What the judge's process may have written, by the name of the store's method."""
READER_WRITES = frozenset(
    {
        *_CALLS,
        "people.put",
        "people.remove",
        *(f"runs.{name}" for name in ("add", "begin", "cancel", "create", "end", "plan", "retry")),
        *(f"schedules.{name}" for name in ("add", "fire", "pause", "remove")),
        "triage.mark",
    }
)
"""What the reader may have written."""


def writing(store: Store, allowed: frozenset[str]) -> Callable[..., Awaitable[Any]]:
    """Returns the front's handler of a child's requests to write; the child may ask for what ``allowed`` names."""

    async def write(_: Any, name: str, arguments: Any, options: Any) -> Any:
        if name not in allowed:
            raise PermissionError(f"this process may not have {name} written")
        return await asyncio.wrap_future(operator.attrgetter(name)(store)(*arguments, **options))

    return write


_TABLES = {
    "jobs": Jobs,
    "people": People,
    "runs": RunTable,
    "schedules": Schedules,
    "spending": Spending,
    "triage": TriageTable,
    "verdicts": Verdicts,
}


class AskedStore(Store):
    """What stands in for the store in a child. ``writes``: what is asked of the front. On the event loop."""

    def __init__(self, path: Path, clock: StoreClock, front: Peer, writes: frozenset[str]) -> None:
        self.path, self.clock, self.reads = path, clock, StoreReader(path)
        self._front, self._loop = front, asyncio.get_running_loop()
        for name, table in _TABLES.items():
            setattr(self, name, _AskedTable(name, table(self.reads.connection), writes, self._write))

    def put(self, key: str, value: str) -> Future[Any]:
        return self._write("put", key, value)

    def _write(self, name: str, *arguments: Any, **options: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._front.ask("write", name, arguments, options), self._loop)


class _AskedTable:
    """The tables of one subject: what is read is read here, and what writes is asked of the front, by its name."""

    def __init__(self, name: str, reads: Any, writes: frozenset[str], write: Callable[..., Future[Any]]) -> None:
        self._name, self._reads, self._writes, self._write = name, reads, writes, write

    def __getattr__(self, name: str) -> Any:
        asked = f"{self._name}.{name}"
        if asked not in self._writes:
            return getattr(self._reads, name)
        return functools.partial(self._write, asked)
