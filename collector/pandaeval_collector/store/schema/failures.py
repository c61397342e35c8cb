"""Groups of failures with one root cause."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- Failures with one root cause. `text`: of the first one, which others are compared with; `examples`: the newest.
    CREATE TABLE failure_groups (
        id TEXT PRIMARY KEY,
        metric TEXT NOT NULL,
        label TEXT NOT NULL,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        severity TEXT NOT NULL,
        agent TEXT NOT NULL,
        service TEXT NOT NULL,
        text TEXT NOT NULL,
        count INTEGER NOT NULL,
        first_at REAL NOT NULL,
        last_at REAL NOT NULL,
        examples BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX failure_groups_by_time ON failure_groups (last_at);
    """,
)
