"""The tables of the store, and the migrations that bring an older file to the current schema."""

from __future__ import annotations

import sqlite3

from pandaeval_collector.store import attributes

MIGRATIONS: tuple[str, ...] = (
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
    """
    -- An application's word on a trace: its session, and that the trace is complete.
    ALTER TABLE chunks ADD COLUMN session TEXT NOT NULL DEFAULT '';
    ALTER TABLE chunks ADD COLUMN closes INTEGER NOT NULL DEFAULT 0;
    -- Sessions that an application ended, until they are scored for good.
    CREATE TABLE endings (session_id TEXT PRIMARY KEY) WITHOUT ROWID;
    """,
    """
    -- Many log records or spans in a row: so many `items`, packed, the last of them numbered `seq`. NULL: one alone, as
    -- it is sent.
    ALTER TABLE outbox ADD COLUMN items INTEGER;
    DROP INDEX outbox_by_signal;
    CREATE INDEX outbox_by_signal ON outbox (signal, seq, size, items);
    """,
    """
    -- Which responses of models a trace gave (continued = 0) and which one it goes on from (1), by digests of their
    -- ids. `no` is that of the trace, `block` its upper bits. Such a trace has a row in `members` even while it
    -- belongs to no session (session = 0).
    CREATE TABLE responses (
        block INTEGER NOT NULL,
        continued INTEGER NOT NULL,
        digest BLOB NOT NULL,
        no INTEGER NOT NULL,
        PRIMARY KEY (block, continued, digest, no)
    ) WITHOUT ROWID;
    """,
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
    """
    -- What people said of runs: of each annotator the newest verdict. `unit` is a trace's or a session's id, `passed`
    -- their own word (NULL: only a score), `probability` the chance that the run was chosen for labelling.
    CREATE TABLE people_labels (
        no INTEGER PRIMARY KEY,
        unit TEXT NOT NULL,
        metric TEXT NOT NULL,
        score REAL,
        passed INTEGER,
        annotator TEXT NOT NULL,
        at REAL NOT NULL,
        comment TEXT NOT NULL,
        probability REAL,
        UNIQUE (unit, metric, annotator)
    );
    -- What labels are held against: judges' scores, kept longer than results. The newest row of a (metric, unit)
    -- stands. They lie in order of arrival and have no index: they are read as a whole, now and then.
    CREATE TABLE judged (
        no INTEGER PRIMARY KEY,
        unit TEXT NOT NULL,
        metric TEXT NOT NULL,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        score REAL NOT NULL,
        passed INTEGER,
        threshold REAL,
        model TEXT NOT NULL,
        version TEXT NOT NULL,
        -- the chance that the run was judged
        probability REAL NOT NULL,
        at REAL NOT NULL
    );
    -- Runs that were drawn to be labelled, with their chances.
    CREATE TABLE label_draws (
        unit TEXT NOT NULL,
        metric TEXT NOT NULL,
        probability REAL NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (unit, metric)
    ) WITHOUT ROWID;
    """,
    """
    -- By which people find agents' traces (under their numbers) and sessions (theirs below zero, once they have results
    -- of their own) again, worst first. `session`: number of the session, 0 for none; `at`: start, Unix milliseconds.
    CREATE TABLE listed (
        no INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        at INTEGER NOT NULL,
        agent TEXT NOT NULL DEFAULT '',
        service TEXT NOT NULL DEFAULT '',
        environment TEXT NOT NULL DEFAULT '',
        user TEXT NOT NULL DEFAULT '',
        broken INTEGER NOT NULL DEFAULT 0,
        badness REAL NOT NULL,
        failures INTEGER NOT NULL,
        facts BLOB NOT NULL DEFAULT x''
    );
    -- Only of what failed: an index of all would be written all over at each commit.
    CREATE INDEX listed_failures ON listed (badness, no) WHERE badness < 10;
    CREATE INDEX listed_by_session ON listed (session, badness, no) WHERE session > 0;
    -- Holds all that lists are chosen by: they are looked through here, without reading what is shown.
    CREATE INDEX listed_by_time ON listed (at, no, badness, session, agent, service, environment, user);
    ALTER TABLE results ADD COLUMN success INTEGER;
    ALTER TABLE results ADD COLUMN signal REAL;

    -- The spans of agents' traces after the late window, each trace compressed as a whole.
    CREATE TABLE kept (no INTEGER PRIMARY KEY, kept_at REAL NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE INDEX kept_sizes ON kept (size);
    """,
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
    attributes.SCHEMA,
)


class NewerStoreError(RuntimeError):
    """The file was written by a newer version of this program."""


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to the current schema, one version per transaction. Raises :class:`NewerStoreError`."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise NewerStoreError(
            f"the store has schema version {version}, this program knows {len(MIGRATIONS)}: use the newer program, "
            "or point store.path at another directory"
        )
    for number in range(version, len(MIGRATIONS)):
        connection.executescript(f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;")
