"""The tables of raw spans and log records: kept until their trace is decided, and for the late window after that."""

from __future__ import annotations

import itertools
import logging
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import zstandard

from pandaeval_collector.store.access import Access, TableGroup
from pandaeval_collector.store.bulk import insert
from pandaeval_collector.store.chunk_reader import CHUNK, chunk_checksum, chunk_content, chunk_contents, pack
from pandaeval_collector.store.commits import keep_newest, newest_chunk
from pandaeval_collector.store.consumed import Consumed
from pandaeval_collector.store.consumed import write as write_consumed
from pandaeval_collector.store.rows import Chunk

_log = logging.getLogger(__name__)


class StoreFullError(RuntimeError):
    """The disk budget (``store.max_bytes``) is used up: the store refuses new spans rather than drop acknowledged
    ones."""


class ChunkTables(TableGroup):
    """Reads and writes chunks, the raw bytes of traces. The whole store takes at most ``max_bytes`` of disk."""

    def __init__(self, access: Access, max_bytes: int) -> None:
        super().__init__(access)
        self._used_bytes, self._max_bytes = access.used_bytes, max_bytes
        self._took = access.commits.took
        self._chunk_ids = itertools.count(newest_chunk(self._reader()) + 1)
        self._size = self._used_bytes()

    @property
    def max_bytes(self) -> int:
        """The disk budget of the store, in bytes."""
        return self._max_bytes

    def size_bytes(self) -> int:
        """Returns how many bytes of the store's file are in use, free pages not counted."""
        self._size = self._used_bytes()
        return self._size

    def next_chunk_id(self) -> int:
        """Returns the id of the next chunk; ids grow in order of arrival."""
        return next(self._chunk_ids)

    def append(
        self, chunks: Sequence[Chunk], endings: Sequence[str] = (), read: Sequence[Consumed] = ()
    ) -> Future[None]:
        """Stores chunks, the ids of sessions that an application ended with them, and how far the log was read that
        they came from; the future is done when they are committed. Raises :class:`StoreFullError` at once."""
        self._refuse_when_full()

        return self._writer.submit_item(self._insert, (chunks, endings, read))

    def chunks(self, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
        """Reads ``(is_logs, data)`` of chunks, by id. Raises ``LookupError`` when one of them is gone: half a trace
        must not be taken for the whole."""
        return chunk_contents(self._reader(), ids)

    def open_chunks(self) -> Iterator[Chunk]:
        """Yields the chunks of undecided traces in order of arrival: a restart resumes from them. A chunk that was
        damaged on disk has no data here; the decision about its trace reads it again and sets the trace aside."""
        with self._scan() as reader:
            undecided = reader.execute(
                f"""WITH held AS MATERIALIZED (
                       SELECT value FROM traces, json_each(CAST(traces.chunks AS TEXT)) WHERE traces.size > 0)
                   SELECT {CHUNK} FROM chunks WHERE id NOT IN held ORDER BY id"""  # noqa: S608
            )
            for row in undecided:
                logs, _, id_, trace_id, items, start_ns, session, closes, *_ = row
                try:
                    content = chunk_content(row)
                except zstandard.ZstdError as error:  # a start must not fail over it
                    _log.error("spans of trace %s are damaged and cannot be read any more (%s)", trace_id.hex(), error)
                    content = b""
                yield Chunk(id_, trace_id, bool(logs), items, start_ns, content, session, bool(closes))

    def discard(self, ids: Sequence[int]) -> Future[None]:
        """Deletes chunks that brought nothing new to a decided trace."""

        def work(connection: sqlite3.Connection) -> None:
            keep_newest(connection)
            connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in ids])

        return self._writer.submit(work)

    def traces_by_start(self) -> Iterator[tuple[bytes, list[int], int, int]]:
        """Yields each trace that has chunks, with their ids, bytes and items (copies counted), earliest start first
        (for files: the order on disk must not matter). Memory does not grow with their number."""
        with self._scan() as reader:
            rows = reader.execute(
                """SELECT trace_id, group_concat(id), sum(size), sum(items),
                          min(CASE logs WHEN 0 THEN start_ns END) AS start
                   FROM chunks GROUP BY trace_id ORDER BY start, trace_id"""
            )
            for trace_id, ids, size, items, _ in rows:
                yield trace_id, sorted(int(part) for part in ids.split(",")), size, items

    def _refuse_when_full(self) -> None:
        if self._size >= self._max_bytes and self.size_bytes() >= self._max_bytes:
            raise StoreFullError(
                f"the store holds {self._size >> 20} MiB, its budget store.max_bytes is {self._max_bytes >> 20} MiB"
            )

    def _insert(
        self,
        connection: sqlite3.Connection,
        appended: Sequence[tuple[Sequence[Chunk], Sequence[str], Sequence[Consumed]]],
    ) -> None:
        # Packed here and not by the callers: an event loop is too dear to compress on.
        chunks = [chunk for some, _, _ in appended for chunk in some]
        rows = [_row(*each) for each in zip(chunks, pack([chunk.data for chunk in chunks]), strict=True)]
        self._size += sum(len(row[7]) for row in rows)
        insert(connection, "chunks", rows)
        for chunk in chunks:
            self._took(chunk.id)
        insert(connection, "endings", [(id_,) for _, ended, _ in appended for id_ in ended], verb="INSERT OR IGNORE")
        for _, _, read in appended:
            write_consumed(connection, read)


def _row(chunk: Chunk, content: tuple[bool, bytes]) -> tuple[Any, ...]:
    packed, data = content
    logs, id_, trace_id, items, start_ns = int(chunk.logs), chunk.id, chunk.trace_id, chunk.items, chunk.start_ns
    session, closes = chunk.session, int(chunk.closes)
    checksum = chunk_checksum([logs, int(packed), id_, trace_id, items, start_ns, session, closes], data)
    return id_, trace_id, logs, items, start_ns, len(chunk.data), packed, data, session, closes, checksum
