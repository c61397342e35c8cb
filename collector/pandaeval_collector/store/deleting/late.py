"""Keeps pending decisions from restoring deleted data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from pandaeval_collector.store import numbers
from pandaeval_collector.store.deleting.hashes import Gone
from pandaeval_collector.store.deleting.queued import concerns, items_of
from pandaeval_collector.store.outbox import outbox_batches

if TYPE_CHECKING:
    from pandaeval_collector.store.changes import WriteSet
    from pandaeval_collector.store.failure_groups import FailureGroupRow
    from pandaeval_collector.store.rows import OutboxBatch
    from pandaeval_collector.store.runs import RunBatch


def spared(connection: sqlite3.Connection, changes: WriteSet, gone: Gone) -> WriteSet:
    """Return a decision without deleted traces and sessions, and delete their chunks."""
    if not gone:
        return changes
    traces = _deleted_traces(changes, gone)
    sessions = _deleted_sessions(connection, changes, gone, traces)
    runs = [replace(run, results=_stored(connection, run)) for run in changes.runs]
    changes = replace(changes, runs=runs, failures=_without_examples(changes.failures, gone, bool(traces)))
    if not traces and not sessions:
        return changes
    chunks = [(id_,) for row in changes.traces if row.trace_id.hex() in traces for id_ in row.chunks]
    connection.executemany("DELETE FROM chunks WHERE id = ?", chunks)
    return _without(changes, traces, sessions)


def _units(changes: WriteSet) -> set[str]:
    return {row.unit for row in changes.results} | {row.unit for row in changes.judged}


def _deleted_traces(changes: WriteSet, gone: Gone) -> set[str]:
    rows = [row for each in fields(changes) for row in getattr(changes, each.name) if hasattr(row, "trace_id")]
    ids = {row.trace_id.hex() for row in rows} | {numbers.trace_of(unit) for unit in _units(changes)}
    return {id_ for id_ in ids if id_ and id_ in gone}


def _deleted_sessions(connection: sqlite3.Connection, changes: WriteSet, gone: Gone, traces: set[str]) -> set[str]:
    named = {*changes.touched, *changes.closed, *changes.elsewhere, *changes.endings, *_units(changes)}
    named -= {row.session_id for row in changes.session_traces if row.trace_id.hex() not in traces}
    found = {id_ for id_ in named if id_ in gone}
    return found - numbers.of_sessions(connection, found).keys()


def _stored(connection: sqlite3.Connection, run: RunBatch) -> list[Any]:
    about = {each.about for each in run.results}
    stored = set[int]()
    for table, sign in (("traces", 1), ("sessions", -1)):
        query = f"SELECT no FROM {table} WHERE no IN ({{marks}})"  # noqa: S608
        stored |= {sign * no for (no,) in numbers.each_of(connection, query, {sign * no for no in about})}
    return [each for each in run.results if each.about in stored]


def _without_examples(rows: Iterable[FailureGroupRow], gone: Gone, may_begin: bool) -> list[FailureGroupRow]:
    bare = [row for row in rows if may_begin or row.id in gone]
    blank = [replace(row, title=row.label, description="", text="", cause="") for row in bare]
    return [*(row for row in rows if row not in bare), *blank]


def _without(changes: WriteSet, traces: set[str], sessions: set[str]) -> WriteSet:
    def stays(row: Any) -> bool:
        unit = getattr(row, "unit", "")
        trace_id = row.trace_id.hex() if hasattr(row, "trace_id") else numbers.trace_of(unit)
        return trace_id not in traces and unit not in sessions

    kept: dict[str, Any] = {
        name: [row for row in getattr(changes, name) if stays(row)]
        for name in ("traces", "results", "judged", "session_traces", "responses", "jobs", "listed")
    }
    for name in ("touched", "closed", "elsewhere"):
        kept[name] = getattr(changes, name) - sessions
    kept["endings"] = [id_ for id_ in changes.endings if id_ not in sessions]
    kept["moved"] = [id_ for id_ in changes.moved if id_.hex() not in traces]
    for name in ("strangers", "contents"):
        kept[name] = {id_: each for id_, each in getattr(changes, name).items() if id_.hex() not in traces}
    kept["outbox"] = [batch for each in changes.outbox for batch in _batches_without(each, traces)]
    return replace(changes, **kept)


def _batches_without(batch: OutboxBatch, traces: set[str]) -> list[OutboxBatch]:
    items = items_of(batch.items, batch.packed)
    return outbox_batches(batch.signal, [item for item in items if not concerns(item, traces)])
