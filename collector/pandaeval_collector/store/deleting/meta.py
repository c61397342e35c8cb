"""Rows of the table ``meta`` by key prefix."""

from __future__ import annotations

import sqlite3


def beginning_with(connection: sqlite3.Connection, prefix: str) -> list[tuple[str, str]]:
    query = "SELECT key, value FROM meta WHERE key >= ? AND key < ? ORDER BY key"
    return connection.execute(query, (prefix, after(prefix))).fetchall()


def after(prefix: str) -> str:
    """Return the first text after all texts with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
