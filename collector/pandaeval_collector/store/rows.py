"""Value types of the store, and checksums of rows that scores rest on: spans (:mod:`chunks`), session facts and
results. Compressed data has zstd's checksum.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MEMBER = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, answer, answer_sum"
"""The columns that :func:`checked_members` reads, behind the session's id."""
FACTS = "members.trace_id, start_ns, end_ns, members.body, members.body_sum, x'', NULL"
"""The columns of :data:`MEMBER` without answers."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items of one trace as they came in one request. ``id`` is given by the store; ``start_ns`` is the earliest
    start among its spans (0 for logs). ``session``, ``closes``: an application said which session the trace belongs
    to, and that it is complete."""

    id: int
    trace_id: bytes
    logs: bool
    items: int
    start_ns: int
    data: bytes
    session: str = ""
    closes: bool = False


# Nobody changes what stands here. The rows of a decision are not declared frozen because setting the fields of a frozen
# object takes four times as long, and there are many.


@dataclass(slots=True)
class DecidedTrace:
    """A decision about a trace."""

    trace_id: bytes
    revision: int
    final: bool
    digest: str
    known: frozenset[bytes]
    chunks: Sequence[int]
    size: int


@dataclass(slots=True)
class ResultRow:
    """A stored result; ``body``: its JSON object. ``signal``: 0..1, for lists. ``settled``: a final result of the unit
    and metric exists. ``verdict``: see :attr:`pandaeval_collector.base.result.Result.verdict`.
    """

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
    """What lists show of a decided trace. ``at_ms``: start, Unix milliseconds; ``broken``: the run itself failed;
    ``facts``: all that is shown, a JSON object; ``attributes``: pairs ``key=value`` that it is found by."""

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
    """What a decided trace leaves behind for its session, or for one that it may come into (``session_id`` is empty
    then): ``body``, facts as a JSON object, and ``answer``, what is seldom needed of it."""

    trace_id: bytes
    session_id: str
    start_ns: int
    end_ns: int
    body: bytes
    answer: bytes = b""


@dataclass(slots=True)
class ResponseRow:
    """A decided trace gave a response of a model, or goes on from it (``continued``)."""

    trace_id: bytes
    digest: bytes
    continued: bool


@dataclass(slots=True)
class OutboxBatch:
    """One row of the outbox: ``items`` OTLP items of one ``signal`` (``logs`` or ``traces``), encoded as they will be
    sent. ``packed``: their lengths and bodies, compressed, see :mod:`pandaeval_collector.store.outbox`."""

    signal: str
    items: int
    packed: bytes


@dataclass(slots=True)
class OutboxRow:
    """An item of the outbox: ``signal`` is ``logs`` or ``traces``, ``body`` one encoded OTLP item."""

    signal: str
    body: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """What is added to one series; see :class:`pandaeval_collector.store.series.Increment`. ``buckets`` and
    ``exemplars`` by bucket index, exemplars as (value, trace id, span id, time in ns)."""

    name: str
    attributes: str
    width: int
    count: int
    total: float
    buckets: Mapping[int, int]
    exemplars: Mapping[int, tuple[float, str, str, int]]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A judging job to be made, due ``delay`` seconds from now. ``id``: that of the result to be; ``body``: JSON for
    the runner."""

    id: str
    trace_id: bytes
    metric: str
    delay: float
    body: bytes


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a leased job ended: ``state`` is ``done``, ``dead`` or ``cancelled``."""

    id: str
    state: str
    why: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. Times are Unix seconds; ``crashes``: how often the worker died over it."""

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
    """A judge's score of a run (``unit``) as people's labels are held against it. ``metric``: ``level.name``;
    ``model``, ``version``: of judge and metric; ``probability``: the chance that the run was judged."""

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
    """A run that was drawn to be labelled, and the chance that it had."""

    unit: str
    metric: str
    probability: float


class DamagedRowError(sqlite3.DataError):
    """A row is not as it was stored."""


def row_sum(fields: Sequence[object], content: bytes) -> int:
    """Compute the checksum of some fields and the content of a row."""
    return zlib.crc32(content, zlib.crc32(ascii(fields).encode()))


def member_sums(row: SessionTraceRow) -> tuple[int, int]:
    """Compute the checksums of a member's facts and of its answer."""
    return row_sum([row.trace_id, row.start_ns, row.end_ns], row.body), row_sum([row.trace_id], row.answer)


def checksum_of(row: ResultRow) -> int:
    """Compute the checksum of a result, its place among all results included; -1 if the row cannot be a row that was
    stored."""
    if type(row.body) is not bytes:
        return -1
    return row_sum([row.seq, row.id, row.unit, row.metric, row.revision], row.body)


def checked_members(rows: Iterable[Sequence[Any]]) -> Iterator[SessionTraceRow]:
    """Read members from rows of (session id, :data:`MEMBER`). Raises :class:`DamagedRowError` for a row that was
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
    """Write the value in the place of a trace's id, which may be damaged."""
    return trace_id.hex() if isinstance(trace_id, bytes) else ascii(trace_id)
