"""Rows of the table ``meta`` whose keys begin alike."""

from __future__ import annotations

import sqlite3


def beginning_with(connection: sqlite3.Connection, prefix: str) -> list[tuple[str, str]]:
    """Returns the keys that begin with ``prefix``, in their order, with their values."""
    query = "SELECT key, value FROM meta WHERE key >= ? AND key < ? ORDER BY key"
    return connection.execute(query, (prefix, after(prefix))).fetchall()


def after(prefix: str) -> str:
    """Returns the first text behind all that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
