"""Value types of the store, and row checksums."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.wire.labels import HumanLabel

MEMBER = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, answer, answer_sum"
"""The columns that :func:`checked_members` reads after the session's id."""
FACTS = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, x'', NULL"
"""The columns of :data:`MEMBER` without answers."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items of one trace in one request.

    ``start_ns``: earliest span start, 0 for logs. ``session``, ``closes``: from the application.
    """

    id: int
    trace_id: bytes
    logs: bool
    items: int
    start_ns: int
    data: bytes
    session: str = ""
    closes: bool = False


# No code changes these objects. They are not frozen, because creating a frozen object takes four times as long.


@dataclass(slots=True)
class DecidedTrace:
    trace_id: bytes
    revision: int
    final: bool
    digest: str
    known: frozenset[bytes]
    chunks: Sequence[int]
    size: int


@dataclass(slots=True)
class ResultRow:
    """A stored result. ``body``: JSON. ``signal``: 0..1, for lists. ``settled``: a final result exists."""

    id: str
    unit: str
    metric: str
    revision: int
    body: bytes
    counted: bool = False
    seq: int = 0
    success: bool | None = None
    signal: float | None = None
    settled: bool = True
    verdict: str = ""


@dataclass(slots=True)
class ListedRow:
    """List data of a trace.

    ``at_ms``: Unix milliseconds. ``broken``: the run failed. ``facts``: JSON. ``attributes``: ``key=value``.
    """

    trace_id: bytes
    at_ms: int
    agent: str
    service: str
    environment: str
    user: str
    broken: bool
    facts: bytes
    attributes: tuple[str, ...] = ()


@dataclass(slots=True)
class SessionTraceRow:
    """A decided trace for its session, or a possible session (``session_id`` is empty).

    ``body``: JSON. ``answer``: rarely needed data.
    """

    trace_id: bytes
    session_id: str
    start_ns: int
    end_ns: int
    body: bytes
    answer: bytes = b""


@dataclass(slots=True)
class ResponseRow:
    """A model response that a decided trace gave or continues (``continued``)."""

    trace_id: bytes
    digest: bytes
    continued: bool


@dataclass(slots=True)
class OutboxBatch:
    """A row of ``items`` encoded OTLP items, ``packed`` by :mod:`pandaeval_collector.store.outbox`."""

    signal: str
    items: int
    packed: bytes


@dataclass(slots=True)
class OutboxRow:
    """An encoded OTLP item; ``signal``: ``logs`` or ``traces``."""

    signal: str
    body: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """An addition to a series. ``exemplars``: (value, trace id, span id, ns) by bucket index."""

    name: str
    attributes: str
    width: int
    count: int
    total: float
    buckets: Mapping[int, int]
    exemplars: Mapping[int, tuple[float, str, str, int]]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A new judge job, due in ``delay`` seconds. ``id``: of its future result. ``body``: JSON."""

    id: str
    trace_id: bytes
    metric: str
    delay: float
    body: bytes


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A person's statement that a finding of code is false, stored as ``label``, or the withdrawal of the statement."""

    label: HumanLabel
    undone: bool = False


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a leased job: ``done``, ``dead`` or ``cancelled``."""

    id: str
    state: str
    why: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. Times: Unix seconds. ``crashes``: worker deaths."""

    id: str
    trace_id: bytes
    metric: str
    state: str
    due_at: float
    created_at: float
    attempts: int
    crashes: int
    why: str
    error: str
    body: bytes


@dataclass(slots=True)
class JudgedRow:
    """A judge's score.

    ``metric``: ``level.name``. ``model``, ``version``: of judge and metric. ``probability``: of judging.
    """

    unit: str
    metric: str
    session: str
    agent: str
    score: float
    passed: bool | None
    threshold: float | None
    model: str
    version: str
    probability: float


@dataclass(frozen=True, slots=True)
class DrawnRow:
    unit: str
    metric: str
    probability: float


class DamagedRowError(sqlite3.DataError):
    """The checksum of a row is wrong."""


def row_sum(fields: Sequence[object], content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(ascii(fields).encode()))


def member_sums(row: SessionTraceRow) -> tuple[int, int]:
    return row_sum([row.trace_id, row.start_ns, row.end_ns], row.body), row_sum([row.trace_id], row.answer)


def checksum_of(row: ResultRow) -> int:
    """Return a result's checksum, including its position; -1 for an impossible row."""
    if type(row.body) is not bytes:
        return -1
    return row_sum([row.seq, row.id, row.unit, row.metric, row.revision], row.body)


def checked_members(rows: Iterable[Sequence[Any]]) -> Iterator[SessionTraceRow]:
    """Read members from rows of (session id, :data:`MEMBER`). Raises :class:`DamagedRowError`."""
    for session_id, trace_id, start_ns, end_ns, body, body_sum, answer, answer_sum in rows:
        try:
            read = SessionTraceRow(trace_id, session_id, start_ns, end_ns, body, answer)
            facts, answer_checksum = member_sums(read)
        except (TypeError, ValueError):  # a value has a wrong type
            facts, answer_checksum = -1, -1
        if facts != body_sum or (answer_sum is not None and answer_checksum != answer_sum):
            raise DamagedRowError(
                f"what trace {hex_of(trace_id)} left for its session was damaged on disk: its checksum differs"
            )
        yield read


def hex_of(trace_id: object) -> str:
    """Format a possibly damaged trace id."""
    return trace_id.hex() if isinstance(trace_id, bytes) else ascii(trace_id)
