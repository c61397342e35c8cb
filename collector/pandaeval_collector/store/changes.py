"""Transactions that write decisions to the store, on the writer's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field

import orjson

from pandaeval_collector.store import (
    consumed,
    failure_groups,
    jobs,
    listed,
    numbers,
    outbox,
    people,
    runs,
    series_table,
)
from pandaeval_collector.store.clock import Times
from pandaeval_collector.store.consumed import Consumed
from pandaeval_collector.store.failure_groups import FailureGroupRow
from pandaeval_collector.store.responses import BLOCK_BITS
from pandaeval_collector.store.rows import (
    DecidedTrace,
    Dismissal,
    JobEnd,
    JobRow,
    JudgedRow,
    ListedRow,
    OutboxBatch,
    ResponseRow,
    ResultRow,
    SeriesRow,
    SessionTraceRow,
    checksum_of,
    member_sums,
)
from pandaeval_collector.store.runs import RunBatch
from pandaeval_collector.store.table import insert

_IN_TRACE = ("trace.", "turn.")
"""Prefixes of the metrics whose results belong to a trace or a turn."""


@dataclass(slots=True)
class WriteSet:
    traces: list[DecidedTrace] = field(default_factory=list)
    results: list[ResultRow] = field(default_factory=list)
    judged: list[JudgedRow] = field(default_factory=list)
    session_traces: list[SessionTraceRow] = field(default_factory=list)
    responses: list[ResponseRow] = field(default_factory=list)
    moved: list[bytes] = field(default_factory=list)
    """Traces that left their session and joined no other session."""
    touched: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    services: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The known services of sessions, if they changed."""
    elsewhere: set[str] = field(default_factory=set)
    """Sessions that another collector scores. Only their names are stored; already open sessions stay open."""
    strangers: dict[bytes, str] = field(default_factory=dict)
    """Traces that other collectors decided, with the digests of their evidence."""
    contents: dict[bytes, bytes] = field(default_factory=dict)
    """Stored contents of :attr:`strangers`, if they were sent."""
    endings: list[str] = field(default_factory=list)
    """Sessions that an application ended."""
    read: list[Consumed] = field(default_factory=list)
    """Offsets in the topic of members after these changes."""
    outbox: list[OutboxBatch] = field(default_factory=list)
    series: list[SeriesRow] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    ended: list[JobEnd] = field(default_factory=list)
    listed: list[ListedRow] = field(default_factory=list)
    runs: list[RunBatch] = field(default_factory=list)
    failures: list[FailureGroupRow] = field(default_factory=list)
    dismissals: list[Dismissal] = field(default_factory=list)


def apply(
    connection: sqlite3.Connection, changes: WriteSet, times: Times, perhaps_known: Collection[bytes]
) -> list[ResultRow]:
    """Write a decision. Returns the new results with ``seq``. ``perhaps_known``: traces that may already be decided."""
    now = times.calendar
    known = numbers.of_traces(connection, perhaps_known)
    traces = _apply_traces(connection, changes.traces, known, now)
    first_time = traces.keys() - known.keys()
    _know_strangers(connection, changes.strangers, changes.contents, now)
    of_trace = _numbers(connection, changes, traces, now)
    of_session = _apply_sessions(connection, changes, of_trace, now)
    listed.move(connection, {of_trace[id_]: no for id_, no in of_session.items() if id_ not in traces})
    redecided = {trace.trace_id for trace in changes.traces if trace.revision > 1}
    jobs.add(connection, changes.jobs, of_trace, redecided, times.running, first_time, now)
    jobs.end(connection, changes.ended, now)
    insert(connection, "labels", changes.labels, verb="INSERT OR IGNORE")
    outbox.put(connection, changes.outbox, times.running)
    series_table.add(connection, changes.series, times.wall)
    insert(connection, f"judged ({people.JUDGED})", [(*astuple(each), now) for each in changes.judged])
    insert(connection, "endings", [(id_,) for id_ in changes.endings], verb="INSERT OR IGNORE")
    consumed.write(connection, changes.read, consumed.MEMBERS)
    runs.add(connection, changes.runs)
    failure_groups.add(connection, changes.failures)
    people.dismiss(connection, changes.dismissals, now)
    listed.note_dismissals(connection, changes.dismissals)
    results = _insert_results(connection, changes.results, of_trace, first_time, now)
    listed.add(connection, changes.listed, of_trace, of_session, results, first_time)
    return [row for row, _ in results]


def _apply_traces(
    connection: sqlite3.Connection, traces: Sequence[DecidedTrace], known: Mapping[bytes, int], now: float
) -> dict[bytes, int]:
    first = numbers.following(connection, "traces")
    new = [trace for trace in traces if trace.trace_id not in known]
    found = {trace.trace_id: number for number, trace in enumerate(new, first)}
    insert(
        connection,
        "traces (revision, final, digest, known, chunks, size, decided_at, no, trace_id)",
        [(*_decision(trace, now), found[trace.trace_id], trace.trace_id) for trace in new],
    )
    again = [trace for trace in traces if trace.trace_id in known]
    connection.executemany(  # another collector sent contents of a trace that is decided here now
        "DELETE FROM kept WHERE no IN (SELECT no FROM traces WHERE no = ? AND revision = 0)",
        [(known[trace.trace_id],) for trace in again],
    )
    connection.executemany(
        """UPDATE traces SET revision = ?, final = ?, digest = ?, known = ?, chunks = ?, size = ?, decided_at = ?
           WHERE no = ?""",
        [(*_decision(trace, now), known[trace.trace_id]) for trace in again],
    )
    return found | {trace.trace_id: known[trace.trace_id] for trace in again}


def _decision(t: DecidedTrace, now: float) -> tuple[object, ...]:
    return t.revision, t.final, t.digest, pack_ids(t.known), orjson.dumps(list(t.chunks)), t.size, now


def pack_ids(ids: frozenset[bytes]) -> bytes:
    """Pack span ids (8 bytes) and log ids (9 bytes) into a sorted blob."""
    sizes = {*map(len, ids)}
    if len(sizes) == 1:  # most traces have no logs, and there are many
        size = bytes(sizes)
        return size + size.join(sorted(ids))
    return b"".join(bytes((len(item),)) + item for item in sorted(ids))


def _apply_sessions(
    connection: sqlite3.Connection, changes: WriteSet, of_trace: Mapping[bytes, int], now: float
) -> dict[bytes, int]:
    """Write sessions and members. Return session numbers by trace id; 0 for none."""
    moved = numbers.of_traces(connection, changes.moved)
    connection.executemany("DELETE FROM members WHERE no = ?", [(number,) for number in moved.values()])
    # The time of an open session is skipped: rewriting it would dirty a page of the table.
    for open_, ids in ((1, changes.touched), (0, changes.closed)):
        insert(
            connection,
            "sessions (session_id, open, touched_at)",
            [(id_, open_, now) for id_ in ids],
            """ON CONFLICT (session_id) DO UPDATE SET open = excluded.open, touched_at = excluded.touched_at
               WHERE NOT (open AND excluded.open)""",
        )
    insert(
        connection,
        "sessions (session_id, open, touched_at)",
        [(id_, 0, now) for id_ in changes.elsewhere],
        "ON CONFLICT (session_id) DO UPDATE SET touched_at = excluded.touched_at WHERE NOT open",
    )
    connection.executemany(
        "UPDATE sessions SET services = ? WHERE session_id = ?",
        [(orjson.dumps(services).decode() if services else "", id_) for id_, services in changes.services.items()],
    )
    rows = changes.session_traces
    of_session = numbers.of_sessions(connection, {row.session_id for row in rows if row.session_id})
    filed = {row.trace_id: of_session[row.session_id] if row.session_id else 0 for row in rows}
    insert(
        connection,
        "members",
        [
            (of_trace[id_ := m.trace_id], filed[id_], id_, m.start_ns, m.end_ns, m.body, m.answer, *member_sums(m))
            for m in rows
        ],
        verb="INSERT OR REPLACE",
    )
    insert(
        connection,
        "responses",
        [(no >> BLOCK_BITS, r.continued, r.digest, no) for r in changes.responses if (no := of_trace[r.trace_id])],
        verb="INSERT OR IGNORE",
    )
    return filed


def _know_strangers(
    connection: sqlite3.Connection, digests: Mapping[bytes, str], contents: Mapping[bytes, bytes], now: float
) -> None:
    """Add other collectors' traces as rows of revision 0, and keep their ``contents``."""
    if not digests:
        return
    there = numbers.of_traces(connection, digests)
    new = sorted(digests.keys() - there.keys())
    rows = [DecidedTrace(trace_id, 0, False, digests[trace_id], frozenset(), (), 0) for trace_id in new]
    of_trace = there | _apply_traces(connection, rows, {}, now)
    connection.executemany(
        "UPDATE traces SET digest = ? WHERE no = ? AND revision = 0", [(digests[id_], no) for id_, no in there.items()]
    )
    connection.executemany(
        """INSERT OR REPLACE INTO kept (no, kept_at, size, data)
           SELECT no, ?, ?, ? FROM traces WHERE no = ? AND revision = 0""",
        [(now, len(data), data, of_trace[id_]) for id_, data in contents.items()],
    )


def _insert_results(
    connection: sqlite3.Connection,
    results: Sequence[ResultRow],
    of_trace: Mapping[bytes, int],
    first_time: Collection[bytes],
    now: float,
) -> list[tuple[ResultRow, int]]:
    """Insert and return the new results, with subject numbers; sessions are below zero.

    The store has no results of ``first_time``.
    """
    about = _about(connection, results, of_trace)
    fresh_units = {trace_id.hex() for trace_id in first_time}  # a turn's unit begins with its trace's unit
    ids = "SELECT id, seq FROM results WHERE about IN ({marks})"
    known = dict(numbers.each_of(connection, ids, {no for row, no in about if row.unit[:32] not in fresh_units}))
    fresh: dict[str, tuple[ResultRow, int]] = {}
    for row, no in about:
        if row.id in fresh or (row.id in known and _stands(connection, known[row.id])):
            continue
        fresh[row.id] = row, no
    for seq, (row, _) in enumerate(fresh.values(), numbers.following(connection, "results")):
        row.seq = seq
    insert(
        connection,
        """results (seq, id, unit, metric, about, revision, counted, created_at, body, success, signal, settled,
                    checksum, verdict)""",
        [
            (
                r.seq,
                r.id,
                r.unit,
                r.metric,
                no,
                r.revision,
                r.counted,
                now,
                r.body,
                r.success,
                r.signal,
                r.settled,
                checksum_of(r),
                r.verdict,
            )
            for r, no in fresh.values()
        ],
    )
    connection.executemany(
        """UPDATE results SET verdict = NULL
           WHERE about = ? AND metric = ? AND unit = ? AND seq < ? AND verdict IS NOT NULL""",
        [(no, r.metric, r.unit, r.seq) for r, no in fresh.values() if r.unit[:32] not in fresh_units],
    )
    return [*fresh.values()]


def _about(
    connection: sqlite3.Connection, results: Sequence[ResultRow], of_trace: Mapping[bytes, int]
) -> list[tuple[ResultRow, int]]:
    by_unit = {trace_id.hex(): number for trace_id, number in of_trace.items()}
    traces = [by_unit.get(row.unit[:32]) if row.metric.startswith(_IN_TRACE) else None for row in results]
    others = {row.unit for row, no in zip(results, traces, strict=True) if no is None}
    of_session = numbers.of_sessions(connection, others)
    return [(row, -of_session.get(row.unit, 0) if no is None else no) for row, no in zip(results, traces, strict=True)]


def _stands(connection: sqlite3.Connection, seq: int) -> bool:
    """Return whether a stored result is the newest. If not, delete it."""
    if connection.execute("SELECT verdict IS NOT NULL FROM results WHERE seq = ?", (seq,)).fetchone() == (1,):
        return True
    connection.execute("DELETE FROM results WHERE seq = ?", (seq,))
    return False


def _numbers(
    connection: sqlite3.Connection, changes: WriteSet, known: Mapping[bytes, int], now: float
) -> Mapping[bytes, int]:
    """Return trace numbers. Missing traces become tombstones."""
    units = {row.unit for row in changes.results if row.metric.startswith(_IN_TRACE)}
    named = {bytes.fromhex(id_) for id_ in map(numbers.trace_of, units) if id_}
    named.update(row.trace_id for row in changes.session_traces)
    named.update(job.trace_id for job in changes.jobs)
    missing = named - known.keys()
    if not missing:
        return known
    found = numbers.of_traces(connection, missing)
    gone = [DecidedTrace(trace_id, 1, True, "", frozenset(), (), 0) for trace_id in missing - found.keys()]
    return {**known, **found, **_apply_traces(connection, gone, {}, now)}
