"""Traces, sessions, their members and results under numbers in order of arrival."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- What comes together lies together: rows are keyed by numbers in order of arrival, since ids, which are random,
    -- would each dirty a page of their own. `traces_by_id` is asked once per block of 8192 numbers.
    ALTER TABLE traces RENAME TO older_traces;
    DROP INDEX traces_by_age;
    CREATE TABLE traces (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        trace_id BLOB NOT NULL,
        revision INTEGER NOT NULL,
        final INTEGER NOT NULL,
        digest TEXT NOT NULL,
        known BLOB NOT NULL,
        chunks BLOB NOT NULL,
        size INTEGER NOT NULL,
        decided_at REAL NOT NULL
    );
    INSERT INTO traces (trace_id, revision, final, digest, known, chunks, size, decided_at)
        SELECT trace_id, revision, final, digest, known, chunks, size, decided_at FROM older_traces ORDER BY decided_at;
    CREATE INDEX traces_by_id ON traces (no >> 13, trace_id);
    CREATE INDEX traces_with_spans ON traces (decided_at) WHERE size > 0;
    CREATE INDEX tombstones ON traces (decided_at) WHERE size = 0;
    DROP TABLE older_traces;

    ALTER TABLE sessions RENAME TO older_sessions;
    DROP INDEX sessions_by_state;
    CREATE TABLE sessions (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL UNIQUE,
        open INTEGER NOT NULL,
        touched_at REAL NOT NULL
    );
    INSERT INTO sessions (session_id, open, touched_at)
        SELECT session_id, open, touched_at FROM older_sessions ORDER BY touched_at;
    CREATE INDEX open_sessions ON sessions (open) WHERE open = 1;
    CREATE INDEX closed_sessions ON sessions (touched_at) WHERE open = 0;
    DROP TABLE older_sessions;

    -- `no` is that of the trace, `session` that of its session. `answer`: what is seldom needed of it.
    CREATE TABLE members (
        no INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        trace_id BLOB NOT NULL,
        start_ns INTEGER NOT NULL,
        end_ns INTEGER NOT NULL,
        body BLOB NOT NULL,
        answer BLOB NOT NULL
    );
    INSERT INTO members
        SELECT traces.no, sessions.no, trace_id, start_ns, end_ns, body, x''
        FROM session_traces JOIN traces USING (trace_id) JOIN sessions USING (session_id);
    CREATE INDEX members_in_order ON members (session, start_ns, trace_id);
    DROP TABLE session_traces;

    -- `about` is the number of the trace, or that of the session below zero. The newest row of an (about, metric) is
    -- the one that stands; an id is there once.
    ALTER TABLE results RENAME TO older_results;
    CREATE TABLE results (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        unit TEXT NOT NULL,
        metric TEXT NOT NULL,
        about INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        -- Whether this unit has entered the score histogram of this metric.
        counted INTEGER NOT NULL,
        created_at REAL NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TEMP TABLE units (unit TEXT PRIMARY KEY, about INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO units SELECT session_id, -no FROM sessions;
    INSERT OR REPLACE INTO units SELECT lower(hex(trace_id)), no FROM traces;
    INSERT INTO results
        SELECT seq, id, unit, metric, coalesce(about, 0), revision, counted, created_at, body
        FROM older_results LEFT JOIN units USING (unit);
    DROP TABLE units;
    DELETE FROM sqlite_sequence WHERE name = 'results';
    UPDATE sqlite_sequence SET name = 'results' WHERE name = 'older_results';
    DROP TABLE older_results;
    CREATE INDEX results_by_unit ON results (about);

    DROP INDEX outbox_by_size;
    DROP INDEX outbox_by_signal;
    CREATE INDEX outbox_by_signal ON outbox (signal, seq, size);
    """,
)
CHECKSUMS: tuple[str, ...] = (
    """
    -- Of the rows, as they were stored. NULL: an older version wrote it. `body_sum` also covers times and ids.
    ALTER TABLE members ADD COLUMN body_sum INTEGER;
    ALTER TABLE members ADD COLUMN answer_sum INTEGER;
    ALTER TABLE results ADD COLUMN checksum INTEGER;
    """,
)
