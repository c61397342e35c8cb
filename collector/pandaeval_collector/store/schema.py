"""The store's tables (``tables.sql``) and their version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pandaeval_collector.base.errors import UserError

VERSION = 24
"""The version of the tables below, as SQLite's ``user_version``."""

_OURS = {"meta", "chunks", "traces", "results"}
"""Tables that each version of the store has."""
_FOREIGN = "{file} is an SQLite file of another program (tables {tables}): point store.path at an empty directory"
_EARLIER = (
    "Set store.path to an empty directory. Your backends keep the exported scores. To keep the spans, install the "
    "earlier version and run `pandaeval store export` (version 0.1.0: `pandaeval spans ID` for each trace)"
)
_LATER = "Install the version that wrote this file, or set store.path to an empty directory"
TABLES = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")


class StoreVersionError(UserError):
    """The file has another version of the tables."""


def version_of(connection: sqlite3.Connection, file: Path) -> int:
    """Return the version of the file's tables, 0 before creation. Raises :class:`StoreVersionError`."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not (version and tables >= _OURS):
        raise StoreVersionError(_FOREIGN.format(file=file, tables=", ".join(sorted(tables)[:5])))
    if version not in (0, VERSION):
        advice = _EARLIER if version < VERSION else _LATER
        raise StoreVersionError(f"{file} has schema version {version}, but this program reads {VERSION}. {advice}")
    return version
