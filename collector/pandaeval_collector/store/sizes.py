"""What a store holds, in numbers, read beside a collector that may run on it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.schema import MIGRATIONS

_TABLES = ("chunks", "kept", "traces", "sessions", "members", "results", "outbox", "jobs", "series", "people_labels")
_OPEN = """
    SELECT count(DISTINCT trace_id) FROM chunks WHERE id NOT IN
    (SELECT value FROM traces, json_each(CAST(traces.chunks AS TEXT)) WHERE traces.size > 0)"""


def sizes(connection: sqlite3.Connection, folder: Path) -> dict[str, Any]:
    """Measures bytes on disk, rows by table, and what is not finished."""

    def one(query: str) -> Any:
        return connection.execute(query).fetchone()[0]

    file = folder / FILE_NAME
    log = file.with_name(f"{file.name}-wal")
    page = one("PRAGMA page_size")
    return {
        "file": str(file),
        "schema": one("PRAGMA user_version"),
        "schema_known": len(MIGRATIONS),
        "bytes": file.stat().st_size,
        "free_bytes": one("PRAGMA freelist_count") * page,
        "log_bytes": log.stat().st_size if log.exists() else 0,
        "rows": {table: one(f"SELECT count(*) FROM {table}") for table in _TABLES},  # noqa: S608
        "span_bytes": one("SELECT total(length(data)) FROM chunks"),
        "kept_bytes": one("SELECT total(size) FROM kept"),
        "outbox_bytes": one("SELECT total(size) FROM outbox"),
        "open_traces": one(_OPEN),
        "open_sessions": one("SELECT count(*) FROM sessions WHERE open = 1"),
        "set_aside": one("SELECT count(*) FROM traces WHERE digest = ''"),
        "jobs": dict(connection.execute("SELECT state, count(*) FROM jobs GROUP BY state")),
        "delivered": {
            key.removeprefix("cursor:"): orjson.loads(value)["seq"]
            for key, value in connection.execute("SELECT key, value FROM meta WHERE key LIKE 'cursor:%'")
        },
        "newest_result": one("SELECT coalesce(max(seq), 0) FROM results"),
    }
