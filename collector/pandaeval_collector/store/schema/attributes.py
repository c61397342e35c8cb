"""Attributes by which lists find traces."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- By which attributes lists find traces: pairs `key=value` by number, and the traces that have them.
    CREATE TABLE attribute_pairs (id INTEGER PRIMARY KEY, pair TEXT NOT NULL UNIQUE);
    CREATE TABLE listed_attributes (pair INTEGER NOT NULL, no INTEGER NOT NULL, PRIMARY KEY (pair, no)) WITHOUT ROWID;
    """,
)
