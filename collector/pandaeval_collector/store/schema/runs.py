"""Evaluation runs and schedules."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- Evaluation runs: traces that are scored again on request, apart from what was said of them when they came.
    -- `body`: what was asked for; `upto`: traces with larger numbers came later; `planned`: up to this number they are
    -- chosen. `state`: queued, running, done or cancelled. `key`: the asker's own, so that asking twice is asking once.
    CREATE TABLE runs (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        key TEXT UNIQUE,
        schedule TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL,
        created_at REAL NOT NULL,
        started_at REAL,
        ended_at REAL,
        upto INTEGER NOT NULL,
        planned INTEGER NOT NULL DEFAULT 0,
        total INTEGER NOT NULL DEFAULT 0,
        done INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        body BLOB NOT NULL
    );
    CREATE INDEX runs_by_state ON runs (state, no);
    -- The traces of a run, `grp` the number of their session (0: none). `state`: pending, done or failed.
    CREATE TABLE run_items (
        run INTEGER NOT NULL,
        no INTEGER NOT NULL,
        grp INTEGER NOT NULL,
        state TEXT NOT NULL,
        why TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (run, no)
    ) WITHOUT ROWID;
    CREATE INDEX run_items_pending ON run_items (run, grp, no) WHERE state = 'pending';
    -- `about` as in results; `by`: version of the metric, and judge or embedder.
    CREATE TABLE run_results (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL,
        about INTEGER NOT NULL,
        metric TEXT NOT NULL,
        outcome TEXT NOT NULL,
        score REAL,
        success INTEGER,
        cost_usd REAL NOT NULL,
        by TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE UNIQUE INDEX run_results_by_unit ON run_results (run, metric, about);
    CREATE INDEX run_results_in_order ON run_results (run, seq);
    -- What is run again and again. `seen`: decisions up to this time of the calendar were in earlier runs.
    CREATE TABLE schedules (
        id TEXT PRIMARY KEY,
        cron TEXT NOT NULL,
        paused INTEGER NOT NULL DEFAULT 0,
        created_at REAL NOT NULL,
        fired_at REAL NOT NULL,
        seen REAL NOT NULL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    """,
)
