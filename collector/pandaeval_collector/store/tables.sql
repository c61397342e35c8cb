-- The tables of the store. Rows are keyed by numbers in order of arrival, so that what comes together lies together: ids,
-- which are random, would each dirty a page of their own. An index by id begins with blocks of numbers, and is asked once
-- per block.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Spans and log records as they came: one row per trace and request. `items` new ones are counted once. `session`,
-- `closes`: an application's word on a trace, its session, and that the trace is complete.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    trace_id BLOB NOT NULL,
    logs INTEGER NOT NULL,
    items INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    packed INTEGER NOT NULL,
    data BLOB NOT NULL,
    session TEXT NOT NULL,
    closes INTEGER NOT NULL,
    checksum INTEGER NOT NULL
);

-- A decided trace while its chunks are kept, a tombstone afterwards (chunks and known are empty then).
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
CREATE INDEX traces_by_id ON traces (no >> 13, trace_id);
CREATE INDEX traces_with_spans ON traces (decided_at) WHERE size > 0;
CREATE INDEX tombstones ON traces (decided_at) WHERE size = 0;

-- The spans of agents' traces after the late window, each trace compressed as a whole.
CREATE TABLE kept (no INTEGER PRIMARY KEY, kept_at REAL NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX kept_sizes ON kept (size);

-- `services`: a JSON list of the known services whose traces are in the session. Services without a common trace have
-- sessions of their own, even with the same session ID.
CREATE TABLE sessions (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL UNIQUE,
    open INTEGER NOT NULL,
    touched_at REAL NOT NULL,
    services TEXT NOT NULL DEFAULT ''
);
CREATE INDEX open_sessions ON sessions (open) WHERE open = 1;
CREATE INDEX closed_sessions ON sessions (touched_at) WHERE open = 0;
-- Sessions that an application ended, until they are scored for good.
CREATE TABLE endings (session_id TEXT PRIMARY KEY) WITHOUT ROWID;

-- What a decided trace leaves behind for its session: `no` is its number, `session` that of its session, `answer` what
-- is seldom needed of it. `body_sum` also covers times and ids.
CREATE TABLE members (
    no INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    body BLOB NOT NULL,
    answer BLOB NOT NULL,
    body_sum INTEGER NOT NULL,
    answer_sum INTEGER NOT NULL
);
CREATE INDEX members_in_order ON members (session, start_ns, trace_id);

-- Which responses of models a trace gave (continued = 0) and which one it goes on from (1), by digests of their ids.
-- `no` is that of the trace, `block` its upper bits. Such a trace has a row in `members` even while it belongs to no
-- session (session = 0).
CREATE TABLE responses (
    block INTEGER NOT NULL,
    continued INTEGER NOT NULL,
    digest BLOB NOT NULL,
    no INTEGER NOT NULL,
    PRIMARY KEY (block, continued, digest, no)
) WITHOUT ROWID;

-- `about` is the number of the trace, or that of the session below zero. The newest row of an (about, metric) is the
-- one that stands; an id is there once. `counted`: whether this unit has entered the score histogram of this metric;
-- `settled`: whether this result or an earlier one of the same unit and metric is for good (those of an open session
-- are not). `verdict`: how rates count it, empty for not at all, NULL once a later revision stands in its place.
CREATE TABLE results (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    unit TEXT NOT NULL,
    metric TEXT NOT NULL,
    about INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    created_at REAL NOT NULL,
    body BLOB NOT NULL,
    success INTEGER,
    signal REAL,
    settled INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    verdict TEXT
);
CREATE INDEX results_by_unit ON results (about);
-- Rates of a window are counted here, without reading results.
CREATE INDEX results_standing ON results (about, metric, verdict) WHERE verdict IS NOT NULL;

-- By which people find agents' traces (under their numbers) and sessions (theirs below zero, once they have results of
-- their own) again, worst first. `session`: number of the session, 0 for none; `at`: start, Unix milliseconds.
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
CREATE INDEX listed_by_session ON listed (session, badness, no, agent, service, environment, user) WHERE session > 0;
-- Holds all that lists are chosen by: they are looked through here, without reading what is shown.
CREATE INDEX listed_by_time ON listed (at, no, badness, session, agent, service, environment, user);
-- By which attributes lists find traces: pairs `key=value` by number, and the traces that have them.
CREATE TABLE attribute_pairs (id INTEGER PRIMARY KEY, pair TEXT NOT NULL UNIQUE);
CREATE TABLE listed_attributes (pair INTEGER NOT NULL, no INTEGER NOT NULL, PRIMARY KEY (pair, no)) WITHOUT ROWID;

-- Failures with one root cause. `text`: of the first one, which others are compared with;
-- `tool`, `cause`: what code knows of the cause, the error without what differs from case to case.
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
    tool TEXT NOT NULL,
    cause TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX failure_groups_by_time ON failure_groups (last_at);

-- What people say of incidents, by the id of a group of failures, or of a cause that has none; the newest row stands.
-- The key is first: else SQLite 3.40's check of the file finds NULL values that are not there.
CREATE TABLE incident_states (
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    note TEXT NOT NULL,
    person TEXT NOT NULL,
    PRIMARY KEY (id, at)
) WITHOUT ROWID;

-- What waits to be sent, encoded once: so many `items`, log records or spans as OTLP bytes, packed, the last of them
-- numbered `seq`.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    signal TEXT NOT NULL,
    created_at REAL NOT NULL,
    body BLOB NOT NULL,
    size INTEGER NOT NULL,
    items INTEGER NOT NULL
);
CREATE INDEX outbox_by_signal ON outbox (signal, seq, size, items);

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

-- What is to be judged: one job per (trace, judged metric), under the id of the result to be. `trace` is the number of
-- the trace (0: it is gone); `jobs_by_id` is asked once per block of 4096 numbers. `state`: due, leased, done, dead or
-- cancelled, or parked while another collector may do it. `ended_at`: end of the job, else of its last try.
CREATE TABLE jobs (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    trace INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    metric TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at REAL NOT NULL,
    created_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    why TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    ended_at REAL,
    body BLOB NOT NULL
);
CREATE INDEX jobs_by_age ON jobs (state, created_at, due_at);
CREATE INDEX jobs_by_trace ON jobs (trace, state);
CREATE INDEX jobs_by_id ON jobs (no >> 12, id);
-- Verdicts under the hash of everything they depend on.
CREATE TABLE verdicts (key TEXT PRIMARY KEY, created_at REAL NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX verdicts_by_age ON verdicts (created_at);
-- US dollars by day (UTC): set aside for calls under way, and spent.
CREATE TABLE spending (day TEXT PRIMARY KEY, reserved REAL NOT NULL, settled REAL NOT NULL) WITHOUT ROWID;

-- What people said of runs: of each annotator the newest verdict. `unit` is a trace's or a session's id, `passed` their
-- own word (NULL: only a score), `probability` the chance that the run was chosen for labelling. `door`: by which one a
-- verdict came: what telemetry says of itself ranks below what a person entered.
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
    door TEXT NOT NULL,
    UNIQUE (unit, metric, annotator)
);
CREATE INDEX people_labels_by_door ON people_labels (door, no);
-- What labels are held against: judges' scores, kept longer than results. The newest row of a (metric, unit) stands.
-- They lie in order of arrival and have no index: they are read as a whole, now and then. `probability`: the chance
-- that the run was judged.
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

-- How far each partition of a log of spans (`log`) and of one of members (`member_log`) was read, and where in it the
-- messages about a trace, or about a session, lie.
CREATE TABLE log_partitions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, settled_below INTEGER NOT NULL);
CREATE TABLE log_traces (
    partition INTEGER NOT NULL, trace_id BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL, PRIMARY KEY (partition, trace_id)
) WITHOUT ROWID;
CREATE TABLE member_log_partitions (
    partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, settled_below INTEGER NOT NULL
);
CREATE TABLE member_log_traces (
    partition INTEGER NOT NULL, trace_id BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL, PRIMARY KEY (partition, trace_id)
) WITHOUT ROWID;

-- Evaluation runs: traces that are scored again on request, apart from what was said of them when they came. `body`:
-- what was asked for; `upto`: traces with larger numbers came later; `planned`: up to this number they are chosen.
-- `state`: queued, running, done or cancelled.
CREATE TABLE runs (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
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
