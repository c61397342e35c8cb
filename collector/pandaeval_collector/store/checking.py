"""Checks a store for damage row by row, also while a collector runs."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import zstandard

from pandaeval_collector.store.chunks import CHUNK, chunk_content, unpacked
from pandaeval_collector.store.numbers import json_list
from pandaeval_collector.store.outbox import batch_items
from pandaeval_collector.store.rows import (
    MEMBER as MEMBER_COLUMNS,
    DamagedRowError,
    ResultRow,
    checked_members,
    checksum_of,
    hex_of,
)

Kind = Literal["pages", "chunks", "traces", "kept", "members", "results", "outbox"]
_MOST_PAGES = 20
_ROWS: dict[Kind, str] = {
    "chunks": f"id, trace_id, {CHUNK}",
    "traces": "no, trace_id, chunks",
    "kept": "no, (SELECT trace_id FROM traces WHERE traces.no = kept.no), data",
    "members": f"no, trace_id, '', {MEMBER_COLUMNS}",
    "results": "seq, unit || ' ' || metric, checksum, id, unit, metric, revision, body, counted, seq",
    "outbox": "seq, signal, items, body",
}
"""Columns read from a row: its key, its subject, and the other values."""
CURES: dict[Kind, str] = {
    "pages": "the next start quarantines the file; save readable spans with `pandaeval store export`",
    "chunks": "the collector will quarantine its trace (metric_error)",
    "traces": "late spans will quarantine this trace; its results stay valid",
    "kept": "its results stay valid; to evaluate the trace again, restore a backup",
    "members": "its session cannot be scored without it; results of its trace stay valid",
    "results": "evaluate the trace again, or restore a backup",
    "outbox": "the collector will drop it and count it as damaged",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged row or file page. ``about``: the trace or unit, if readable."""

    kind: Kind
    key: int
    about: str
    what: str


def damages(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield all damage in one snapshot of the file."""
    connection.execute("BEGIN")
    try:
        for (finding,) in connection.execute(f"PRAGMA integrity_check({_MOST_PAGES})"):
            if finding != "ok":
                yield Damage("pages", 0, "", str(finding))
        for kind, columns in _ROWS.items():
            for row in connection.execute(f"SELECT {columns} FROM {kind} ORDER BY 1"):  # noqa: S608
                if found := _of_row(connection, kind, row):
                    yield Damage(kind, row[0], *found)
    except sqlite3.DatabaseError as error:  # an unreadable page ends the check
        yield Damage("pages", 0, "", str(error))
    finally:
        connection.rollback()


def _of_row(connection: sqlite3.Connection, kind: Kind, row: Sequence[Any]) -> tuple[str, str] | None:
    _, about, *rest = row
    about = hex_of(about) if kind not in ("results", "outbox") else str(about)
    try:
        match kind:
            case "chunks":
                chunk_content(rest)
            case "kept":
                unpacked(rest[0])
            case "members":
                list(checked_members([rest]))
            case "outbox":
                batch_items(*rest)
            case "results":
                if rest[0] != checksum_of(ResultRow(*rest[1:])):
                    return about, "its checksum differs"
            case _:  # checks that no chunk of a decision is missing
                ids = {int(each) for each in orjson.loads(rest[0])}
                query = "SELECT count(*) FROM chunks WHERE id IN (SELECT value FROM json_each(?)) AND trace_id = ?"
                (there,) = connection.execute(query, (json_list(ids), row[1])).fetchone()
                if there < len(ids):
                    return about, f"{len(ids) - there} of its chunks are gone"
    except (DamagedRowError, zstandard.ZstdError, struct.error, TypeError, ValueError) as error:
        return about, "the list of its spans cannot be read" if kind == "traces" else str(error)
    return None
