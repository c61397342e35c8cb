"""The log of deletions: a line per deletion, without content."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import orjson

from pandaeval_collector.store.deleting.hashes import hashed

LOG = "deletions.jsonl"
"""Name of the file in the data directory."""


def note(connection: sqlite3.Connection, by: str, kind: str, value: str, counts: Mapping[str, int]) -> None:
    (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": by,
        "selector": kind,
        "hash": hashed(value),
        "deleted": {name: number for name, number in sorted(counts.items()) if number},
    }
    handle = os.open(Path(file).with_name(LOG), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(handle, orjson.dumps(line) + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
