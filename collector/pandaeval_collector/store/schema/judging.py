"""Judge jobs, verdicts that are remembered, and money that was spent."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- What is to be judged: one job per (trace, judged metric), under the id of the result to be.
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        trace_id BLOB NOT NULL,
        metric TEXT NOT NULL,
        -- due, leased, done, dead or cancelled
        state TEXT NOT NULL,
        due_at REAL NOT NULL,
        created_at REAL NOT NULL,
        lease_until REAL,
        attempts INTEGER NOT NULL DEFAULT 0,
        crashes INTEGER NOT NULL DEFAULT 0,
        why TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        ended_at REAL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX jobs_by_age ON jobs (state, created_at, due_at);
    CREATE INDEX jobs_by_trace ON jobs (trace_id, state);

    -- Verdicts under the hash of everything they depend on.
    CREATE TABLE verdicts (key TEXT PRIMARY KEY, created_at REAL NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX verdicts_by_age ON verdicts (created_at);

    -- US dollars by day (UTC): set aside for calls under way, and spent.
    CREATE TABLE spending (day TEXT PRIMARY KEY, reserved REAL NOT NULL, settled REAL NOT NULL) WITHOUT ROWID;
    """,
)
