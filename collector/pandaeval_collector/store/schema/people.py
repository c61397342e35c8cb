"""Tables of people's verdicts on runs, and of the judges' scores that these are held against."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
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
)
DOORS: tuple[str, ...] = (
    """
    -- By which door a verdict came: what telemetry says of itself ranks below what a person entered.
    ALTER TABLE people_labels ADD COLUMN door TEXT NOT NULL DEFAULT 'person';
    CREATE INDEX people_labels_by_door ON people_labels (door, no);
    """,
)
