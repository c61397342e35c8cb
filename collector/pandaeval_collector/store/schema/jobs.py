"""Judge jobs under numbers in order of arrival."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- As in traces and results: jobs that come together lie together. `trace` is the number of the trace (0: it is
    -- gone); `jobs_by_id` is asked once per block of 4096 numbers.
    ALTER TABLE jobs RENAME TO older_jobs;
    DROP INDEX jobs_by_age;
    DROP INDEX jobs_by_trace;
    CREATE TABLE jobs (
        no INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        trace INTEGER NOT NULL,
        trace_id BLOB NOT NULL,
        metric TEXT NOT NULL,
        -- due, leased, done, dead or cancelled
        state TEXT NOT NULL,
        due_at REAL NOT NULL,
        created_at REAL NOT NULL,
        lease_until REAL, -- of older releases: leases do not run out
        attempts INTEGER NOT NULL DEFAULT 0,
        crashes INTEGER NOT NULL DEFAULT 0,
        why TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        ended_at REAL,
        body BLOB NOT NULL
    );
    CREATE TEMP TABLE judged (trace_id BLOB PRIMARY KEY, no INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO judged SELECT trace_id, max(no) FROM traces GROUP BY trace_id;
    INSERT INTO jobs
        (id, trace, trace_id, metric, state, due_at, created_at, lease_until, attempts, crashes, why, error, ended_at,
         body)
        SELECT id, coalesce(judged.no, 0), trace_id, metric, state, due_at, created_at, lease_until, attempts, crashes,
               why, error, ended_at, body
        FROM older_jobs LEFT JOIN judged USING (trace_id) ORDER BY created_at;
    DROP TABLE judged;
    DROP TABLE older_jobs;
    CREATE INDEX jobs_by_age ON jobs (state, created_at, due_at);
    CREATE INDEX jobs_by_trace ON jobs (trace, state);
    CREATE INDEX jobs_by_id ON jobs (no >> 12, id);
    """,
)
