"""Checksums of rows that scores rest on or that are scores: spans (:mod:`chunks`), what a trace left behind for its
session, and results. What is compressed has zstd's."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pandaeval_collector.store.rows import ResultRow, SessionTraceRow

MEMBER = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, answer, answer_sum"
"""The columns that :func:`checked_members` reads, behind the session's id."""
FACTS = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, x'', NULL"
"""The columns of :data:`MEMBER` without answers."""


class DamagedRowError(sqlite3.DataError):
    """A row is not as it was stored."""


def row_sum(fields: Sequence[object], content: bytes) -> int:
    """Computes the checksum of some fields and the content of a row."""
    return zlib.crc32(content, zlib.crc32(ascii(fields).encode()))


def member_sums(row: SessionTraceRow) -> tuple[int, int]:
    """Computes the checksums of a member's facts and of its answer."""
    return row_sum([row.trace_id, row.start_ns, row.end_ns], row.body), row_sum([row.trace_id], row.answer)


def checksum_of(row: ResultRow) -> int:
    """Computes the checksum of a result, its place among all results included; -1 where the row cannot be one that was
    stored."""
    if type(row.body) is not bytes:
        return -1
    return row_sum([row.seq, row.id, row.unit, row.metric, row.revision], row.body)


def checked_members(rows: Iterable[Sequence[Any]]) -> Iterator[SessionTraceRow]:
    """Reads members from rows of (session id, :data:`MEMBER`). Raises :class:`DamagedRowError` for one that was
    damaged: no session is scored without it, nor a trace that is compared with it."""
    for session_id, trace_id, start_ns, end_ns, body, body_sum, answer, answer_sum in rows:
        try:
            read = SessionTraceRow(trace_id, session_id, start_ns, end_ns, body, answer)
            facts, said = member_sums(read)
        except (TypeError, ValueError):  # of another type than what was stored
            facts, said = -1, -1
        if facts != body_sum or (answer_sum is not None and said != answer_sum):
            raise DamagedRowError(
                f"what trace {hex_of(trace_id)} left for its session was damaged on disk: its checksum differs"
            )
        yield read


def hex_of(trace_id: object) -> str:
    """Writes what stands in the place of a trace's id, which may be damaged."""
    return trace_id.hex() if isinstance(trace_id, bytes) else ascii(trace_id)
