"""One thread that writes, and commits for many callers at once; numbers every commit, inside the store and in a note
beside it, and checks after each that the store's file is in place.

All work that waits when the thread is free shares one transaction and one fsync (group commit): that makes
"acknowledged after commit" cheap. If one piece of work fails, it is undone alone; its neighbours are committed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import os
import queue
import sqlite3
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.store.directory import StoreFiles, is_at

_log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
Together = Callable[[sqlite3.Connection, Sequence[Any]], None]

_MAX_GROUP = 512
_NOT_WRITTEN = (sqlite3.OperationalError, sqlite3.DatabaseError)
"""The classes themselves: a full disk, one that fails, a damaged file. What is derived from them is a fault of the work
that was to be done (a constraint, a value that does not fit)."""

# A note beside the store of how far it was committed: at the next start it shows what a damaged log or an older copy
# of the file lacks.
#
# SQLite ends its log at the first damaged frame and reports nothing: the store is whole then, and older. The note is
# written after each commit and not synced: a killed process leaves it as it was, and a power cut leaves it level
# with the store or behind it, never ahead (``store.durability: full``).
MARK_NAME = "pandaeval.mark"
_NOTE = struct.Struct("<8s16sIQd")  # what it is, the store's id, number of the commit, newest chunk, Unix seconds
_SUM = struct.Struct("<I")
_KIND = b"pandaev1"
_WRAP = 1 << 32
_NOTE_MODE = os.O_RDWR | os.O_CREAT
_KEY, _NEWEST = "store_id", "newest_chunk"
_NUMBER_EVERY_S = 0.1


@dataclass(slots=True)
class _Job:
    """One piece of work: ``work``, or an ``item`` and ``together``, which takes several of its kind."""

    future: Future[Any]
    work: Work | None = None
    together: Together | None = None
    item: Any = None


class WriteHooks:
    """Hooks around every transaction, called on the writer's thread; this one does nothing."""

    def seal(self, connection: sqlite3.Connection) -> None:
        """Called last in a transaction. If it raises, the transaction is undone."""

    def undo(self) -> None:
        """Called after a transaction was undone."""

    def confirm(self) -> None:
        """Called first after a commit, before its callers are told. If it raises, they get that error."""


class Writer:
    """Runs work on the store's only writing connection, in order of submission. Safe to call from any thread."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        on_error: Callable[[Exception], object] = lambda _: None,
        ledger: WriteHooks | None = None,
    ) -> None:
        """Calls ``on_error``, on the writer's thread, with every error that a caller gets."""
        self._connect, self._on_error = connect, on_error
        self._ledger = ledger or WriteHooks()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pandaeval-store", daemon=True)
        self._started: Future[None] = Future()
        self._closed = False
        self._lock = threading.Lock()
        self.commits = 0
        self.failing = ""
        """What kept the last transaction from being written, as SQLite says it; empty after one that was."""

    def start(self) -> None:
        """Opens the connection on the writer's own thread; raises what opening raises."""
        self._thread.start()
        self._started.result()

    def submit(self, work: Work) -> Future[Any]:
        """Queues ``work(connection)``, which runs inside a transaction; the future is done after the commit, with its
        value or error. It can be cancelled until its turn comes. After :meth:`close` the future fails at once."""
        return self._submit(_Job(Future(), work))

    def execute(self, statement: str, *values: object) -> Future[int]:
        """Submits one statement; the future holds how many rows it changed."""
        return self.submit(lambda connection: connection.execute(statement, values).rowcount)

    def submit_item(self, together: Callable[[sqlite3.Connection, Sequence[T]], None], item: T) -> Future[None]:
        """Submits work that costs less done together: items that wait next to each other and have the same
        ``together`` are passed to it as one sequence, or one by one where that fails."""
        return self._submit(_Job(Future(), together=together, item=item))

    def waiting(self) -> int:
        """Returns how many pieces of work have not begun yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finishes what was submitted, then closes the connection. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _submit(self, job: _Job) -> Future[Any]:
        with self._lock:
            if self._closed:
                job.future.set_exception(RuntimeError("the store is closed"))
            else:
                self._queue.put(job)
        return job.future

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - it is start() that has to fail, not this thread
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            while (group := self._next_group()) is not None:
                if jobs := [job for job in group if job.future.set_running_or_notify_cancel()]:
                    self._commit(connection, jobs)
        finally:
            connection.close()

    def _next_group(self) -> list[_Job] | None:
        first = self._queue.get()
        if first is None:
            return None
        group = [first]
        while len(group) < _MAX_GROUP:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._queue.put(None)  # closing comes after the work that is already here
                break
            group.append(job)
        return group

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            values = [*_done(connection, jobs)]
            self._ledger.seal(connection)
            failpoints.reach("before_commit")
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever failed, its callers have to be told
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error:  # the next BEGIN will fail and say so; this thread has to outlive a failing disk
                    _log.exception("a transaction could not be rolled back")
            self._ledger.undo()
            if type(error) in _NOT_WRITTEN:
                self.failing = str(error)
            if len(jobs) == 1:
                self._on_error(error)
                jobs[0].future.set_exception(error)
            else:
                half = len(jobs) // 2  # one of many that fails costs a few commits, not one for each neighbour
                self._commit(connection, jobs[:half])
                self._commit(connection, jobs[half:])
            return
        self.failing = ""
        failpoints.reach("after_commit")
        self.commits += 1
        try:
            self._ledger.confirm()
        except Exception as error:  # noqa: BLE001 - whatever failed, its callers have to be told
            self._on_error(error)
            for job in jobs:
                job.future.set_exception(error)
            return
        for job, value in zip(jobs, values, strict=True):
            job.future.set_result(value)


def _done(connection: sqlite3.Connection, jobs: Sequence[_Job]) -> Iterator[Any]:
    """Runs the jobs and yields the value of each."""
    for together, alike in itertools.groupby(jobs, attrgetter("together")):
        if together is None:
            yield from (job.work(connection) for job in alike if job.work is not None)
        else:
            items = [job.item for job in alike]
            together(connection, items)
            yield from (None for _ in items)


def ahead(number: int, other: int) -> int:
    """Returns how far ``number`` is ahead of ``other``, below zero where it is behind. Numbers start again at 0 after
    32 bits."""
    return (number - other + _WRAP // 2) % _WRAP - _WRAP // 2


class Commits(WriteHooks):
    """Keeps count of what is committed in one store.

    Two counts say how far a store got. Chunks have ids that grow. For all else commits are numbered, in SQLite's
    ``application_id``: it lies on the first page of the file. A commit of nothing but chunks would have to write that
    page for it, so of those only ten a second get a number.

    ``missing``: what a store lacks that was noted as committed, as a clause; empty where nothing is.
    """

    def __init__(self, connection: sqlite3.Connection, directory: Path, place: StoreFiles, was_damaged: bool) -> None:
        """Compares the store with its note and logs what is missing; not if it ``was_damaged``, hence is new."""
        self._place, self._path = place, directory / MARK_NAME
        self._handle = os.open(self._path, _NOTE_MODE, 0o600)
        self._number, self._chunk = number_of(connection), newest_chunk(connection)
        self._taken = 0
        self._is_numbered, self._number_at = False, 0.0
        row = connection.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (_KEY,)).fetchone()
        store = b"" if row is None else _digest(row[0])  # a damaged id counts as another store's
        noted = self._noted()
        self.missing = "" if noted is None or was_damaged else lacking((store, self._number, self._chunk), noted)
        if self.missing:
            _log.error(
                "acknowledged data is missing in %s: %s; what is there is served. It was damaged, or an older copy "
                "was put in its place (docs/operate/deploy.md#missing-data)",
                place.file,
                self.missing,
            )
        elif noted is None and store:
            _log.warning(
                "there is no note of the last commit beside %s: whether all are there is not known", place.file
            )
        # Noted before the store has its id: after a crash in between nothing is there, and nothing is missed.
        new = str(uuid.uuid4())
        self._store = store or _digest(new.encode())
        self._note()
        if not store:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, new))

    def took(self, chunk: int) -> None:
        """Notes that the running transaction inserted a chunk. On the writer's thread."""
        self._taken = max(self._taken, chunk)

    def seal(self, connection: sqlite3.Connection) -> None:
        """Numbers the running transaction. Raises :class:`StoreGoneError`."""
        self._place.require()
        self._is_numbered = not self._taken or time.monotonic() >= self._number_at
        if self._is_numbered:
            following = (self._number + 1) % _WRAP
            connection.execute(f"PRAGMA application_id = {following - (following >> 31) * _WRAP}")

    def undo(self) -> None:
        self._taken = 0

    def confirm(self) -> None:
        """Checks the store after a commit and updates the note. Raises :class:`StoreGoneError` if the commit went into
        a file that is not at the store's path any more."""
        self._chunk, self._taken = max(self._chunk, self._taken), 0
        if self._is_numbered:
            self._number = (self._number + 1) % _WRAP
            self._number_at = time.monotonic() + _NUMBER_EVERY_S
        self._place.check()
        self._note()

    def look(self) -> None:
        """Writes the note again if its file was removed. Any thread."""
        if not is_at(self._path, os.fstat(self._handle)):
            with contextlib.suppress(OSError):  # the directory may be gone, which has consequences of its own
                new = os.open(self._path, _NOTE_MODE, 0o600)
                os.dup2(new, self._handle, inheritable=False)  # in one step: another thread may be writing
                os.close(new)
            self._note()

    def close(self) -> None:
        os.close(self._handle)

    def _noted(self) -> tuple[bytes, int, int, float] | None:
        """Reads the note: the store's id, the number of its newest numbered commit, the id of the newest chunk that was
        ever committed, and when; ``None`` where there is none that can be read."""
        content = os.pread(self._handle, _NOTE.size + _SUM.size, 0)
        note, rest = content[: _NOTE.size], content[_NOTE.size :]
        if len(rest) != _SUM.size or _SUM.unpack(rest) != (zlib.crc32(note),):
            return None
        kind, store, number, chunk, at = _NOTE.unpack(note)
        return (store, number, chunk, at) if kind == _KIND else None

    def _note(self) -> None:
        """Overwrites the note. A full disk must not undo the commit, so errors are ignored and the note lags behind."""
        note = _NOTE.pack(_KIND, self._store, self._number, self._chunk, time.time())
        with contextlib.suppress(OSError):
            os.pwrite(self._handle, note + _SUM.pack(zlib.crc32(note)), 0)


def lacking(there: tuple[bytes, int, int], noted: tuple[bytes, int, int, float]) -> str:
    """Says, as a clause, what a store lacks of what was noted; empty for nothing. ``there``, ``noted``: the store's id,
    the number of the newest numbered commit, the id of the newest chunk; and when that was noted."""
    (store, number, chunk), (id_, noted_number, noted_chunk, at) = there, noted
    last = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))
    if store != id_:
        some = noted_number or noted_chunk
        return f"it is not the store that took {noted_chunk} parts of traces up to {last}" if some else ""
    parts, commits = max(0, noted_chunk - chunk), max(0, ahead(noted_number, number))
    if not parts and not commits:
        return ""
    return f"the last {parts} parts of traces and {commits} numbered commits are missing, up to {last}"


def number_of(connection: sqlite3.Connection) -> int:
    """The number of the last commit that this connection sees."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0]) % _WRAP


def newest_chunk(connection: sqlite3.Connection) -> int:
    """The id of the newest chunk that there ever was, as far as this connection sees; 0 before the first."""
    (there,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
    kept = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", (_NEWEST,)).fetchone()
    return max(int(there), 0 if kept is None else int(kept[0]))


def keep_newest(connection: sqlite3.Connection) -> None:
    """Stores the id of the newest chunk, which would be forgotten with the chunks that are about to be deleted."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NEWEST, str(newest_chunk(connection))))


def _digest(store_id: bytes) -> bytes:
    return hashlib.blake2b(store_id, digest_size=16).digest()
