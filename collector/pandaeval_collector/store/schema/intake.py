"""Tables of what applications state about their traces and sessions (ids, ends), of rows of many items in the outbox,
and of the responses of models that traces go on from."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
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
)
CHECKSUMS: tuple[str, ...] = (
    """
    -- Of the row, as it was stored. NULL: an older version wrote it.
    ALTER TABLE chunks ADD COLUMN checksum INTEGER;
    """,
)
