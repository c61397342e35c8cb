"""Tables of lists: traces and sessions that people find again, the spans that are kept for them, attributes, and groups
of failures."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
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
)
LATER: tuple[str, ...] = (
    """
    -- Whether this result or an earlier one of the same unit and metric is for good. Those of an open session are not.
    ALTER TABLE results ADD COLUMN settled INTEGER NOT NULL DEFAULT 1;
    """,
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
    """
    -- By which attributes lists find traces: pairs `key=value` by number, and the traces that have them.
    CREATE TABLE attribute_pairs (id INTEGER PRIMARY KEY, pair TEXT NOT NULL UNIQUE);
    CREATE TABLE listed_attributes (pair INTEGER NOT NULL, no INTEGER NOT NULL, PRIMARY KEY (pair, no)) WITHOUT ROWID;
    """,
)
CAUSES: tuple[str, ...] = (
    """
    -- What code knows of the cause: the tool, and the error without what differs from case to case.
    ALTER TABLE failure_groups ADD COLUMN tool TEXT NOT NULL DEFAULT '';
    ALTER TABLE failure_groups ADD COLUMN cause TEXT NOT NULL DEFAULT '';
    """,
)
