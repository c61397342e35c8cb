"""Spans, decided traces, results, sessions, the outbox, series and labels: the tables of the first release."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    -- Spans and log records as they came: one row per trace and request. `items` new ones are counted once.
    CREATE TABLE chunks (
        id INTEGER PRIMARY KEY,
        trace_id BLOB NOT NULL,
        logs INTEGER NOT NULL,
        items INTEGER NOT NULL,
        start_ns INTEGER NOT NULL,
        size INTEGER NOT NULL,
        packed INTEGER NOT NULL,
        data BLOB NOT NULL
    );

    -- A decided trace while its chunks are kept, a tombstone afterwards (chunks and known are empty then).
    CREATE TABLE traces (
        trace_id BLOB PRIMARY KEY,
        revision INTEGER NOT NULL,
        final INTEGER NOT NULL,
        digest TEXT NOT NULL,
        known BLOB NOT NULL,
        chunks BLOB NOT NULL,
        size INTEGER NOT NULL,
        decided_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX traces_by_age ON traces (decided_at);

    -- Every result under its content id. The newest row of a (unit, metric) is the one that stands.
    CREATE TABLE results (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        unit TEXT NOT NULL,
        metric TEXT NOT NULL,
        revision INTEGER NOT NULL,
        -- Whether this unit has entered the score histogram of this metric.
        counted INTEGER NOT NULL,
        created_at REAL NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX results_by_unit ON results (unit, metric, seq);
    CREATE INDEX results_by_age ON results (created_at);

    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        open INTEGER NOT NULL,
        touched_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_state ON sessions (open, touched_at);

    -- What a decided trace leaves behind for its session: enough for loop detection and session scores.
    CREATE TABLE session_traces (
        trace_id BLOB PRIMARY KEY,
        session_id TEXT NOT NULL,
        start_ns INTEGER NOT NULL,
        end_ns INTEGER NOT NULL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX session_traces_in_order ON session_traces (session_id, start_ns, trace_id);

    -- What waits to be sent, encoded once: log records and spans as OTLP bytes.
    CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        signal TEXT NOT NULL,
        created_at REAL NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX outbox_by_signal ON outbox (signal, seq);

    -- The score series, cumulative since `start_ns`. `zero_*`: when a reader was first shown the series as 0.
    CREATE TABLE series (
        key TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        attributes TEXT NOT NULL,
        start_ns INTEGER NOT NULL,
        count INTEGER NOT NULL,
        total REAL NOT NULL,
        buckets TEXT NOT NULL,
        exemplars TEXT NOT NULL,
        zero_otlp REAL,
        zero_scrape REAL
    ) WITHOUT ROWID;

    CREATE TABLE labels (kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, value)) WITHOUT ROWID;
    """,
    """
    -- So that the bytes in the outbox can be added up without reading them.
    ALTER TABLE outbox ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
    UPDATE outbox SET size = length(body);
    CREATE INDEX outbox_by_size ON outbox (size);
    """,
)
