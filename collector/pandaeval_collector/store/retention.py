"""Deletes old rows in small batches."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection

import orjson

from pandaeval_collector.store import deleting, listed, people, runs
from pandaeval_collector.store.chunks import keep_newest
from pandaeval_collector.store.responses import BLOCK_BITS
from pandaeval_collector.store.table import StoreTable

_VACUUM_PAGES = 256
_DAYS = 31
"""Days whose spending is kept."""
_EXPIRE = (
    """DELETE FROM members WHERE session = 0 AND no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < :old
        AND EXISTS (SELECT 1 FROM members WHERE members.no = traces.no AND session = 0) LIMIT :limit)""",
    """DELETE FROM members WHERE no IN
       (SELECT members.no FROM sessions JOIN members ON session = sessions.no
        WHERE open = 0 AND touched_at < :old LIMIT :limit)""",
    """DELETE FROM sessions WHERE no IN
       (SELECT no FROM sessions WHERE open = 0 AND touched_at < :old
        AND NOT EXISTS (SELECT 1 FROM members WHERE session = sessions.no) LIMIT :limit)""",
    """DELETE FROM traces WHERE no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < :old
        AND NOT EXISTS (SELECT 1 FROM members WHERE members.no = traces.no) LIMIT :limit)""",
    # Rows about deleted traces and sessions: their numbers are below all numbers that are left.
    f"""DELETE FROM responses WHERE (block, continued, digest, no) IN
        (SELECT block, continued, digest, no FROM responses
         WHERE block < coalesce((SELECT min(no) >> {BLOCK_BITS} FROM traces), 1 << 60) LIMIT :limit)""",  # noqa: S608
    """DELETE FROM listed WHERE no IN (SELECT no FROM listed
       WHERE no > 0 AND no < coalesce((SELECT min(no) FROM traces), 1 << 60) LIMIT :limit)""",
    """DELETE FROM listed WHERE no IN (SELECT no FROM listed
       WHERE no < 0 AND no > -coalesce((SELECT min(no) FROM sessions), 1 << 60) LIMIT :limit)""",
)
"""Statements that delete rows older than the retention, each with a limit."""


def forget(
    _: StoreTable,
    connection: sqlite3.Connection,
    late_window_s: float,
    retention_s: float,
    now: float,
    keep: Collection[bytes] = (),
    limit: int = 2000,
    judged_s: float = 30 * 86_400.0,
    unlisted_only: bool = False,
) -> int:
    """Delete at most ``limit`` rows per kind; repeat while it returns ``limit``.

    Chunks go ``late_window_s`` after the decision (except ``keep``), results and closed sessions after ``retention_s``,
    judge scores after ``judged_s``. ``now``: store calendar. ``unlisted_only``: keep listed traces' chunks until
    ``retention_s``.
    """
    old = now - retention_s
    gone = [
        _forget_chunks(connection, now - late_window_s, old, keep, limit, unlisted_only),
        *(connection.execute(statement, {"old": old, "limit": limit}).rowcount for statement in _EXPIRE),
        _forget_results(connection, old, limit),
        listed.forget_pairs(connection, limit),
        people.forget(connection, now - judged_s, limit),
        runs.forget(connection, old, limit),
    ]
    connection.execute("DELETE FROM jobs WHERE ended_at < ? AND state IN ('done', 'dead', 'cancelled')", (old,))
    connection.execute("DELETE FROM verdicts WHERE created_at < ?", (old,))
    deleting.forget(connection, old)
    newest_days = "SELECT day FROM spending ORDER BY day DESC LIMIT ?"
    connection.execute(f"DELETE FROM spending WHERE day NOT IN ({newest_days})", (_DAYS,))  # noqa: S608
    _give_back_pages(connection)
    return max(gone)


def _forget_chunks(
    connection: sqlite3.Connection, late: float, old: float, keep: Collection[bytes], limit: int, unlisted_only: bool
) -> int:
    rows = connection.execute(
        """SELECT trace_id, chunks, no FROM traces WHERE decided_at < ? AND size > 0
           AND (digest != '' OR decided_at < ?) AND NOT EXISTS
           (SELECT 1 FROM jobs WHERE jobs.trace = traces.no AND jobs.state IN ('due', 'leased'))
           AND NOT (? AND decided_at >= ? AND EXISTS (SELECT 1 FROM listed WHERE listed.no = traces.no))
           ORDER BY decided_at LIMIT ?""",
        (late, old, unlisted_only, old, limit),
    ).fetchall()
    rows = [row for row in rows if row[0] not in keep]
    if not rows:
        return 0
    keep_newest(connection)
    ids = [(chunk,) for _, chunks, _ in rows for chunk in orjson.loads(chunks)]
    connection.executemany("DELETE FROM chunks WHERE id = ?", ids)
    connection.executemany(
        "UPDATE traces SET chunks = '[]', known = x'', size = 0 WHERE no = ?", [(no,) for _, _, no in rows]
    )
    return len(rows)


def _forget_results(connection: sqlite3.Connection, old: float, limit: int) -> int:
    rows = connection.execute("SELECT seq, created_at FROM results ORDER BY seq LIMIT ?", (limit,))  # in order of age
    seqs = [seq for seq, _ in itertools.takewhile(lambda row: row[1] < old, rows)]
    connection.execute("DELETE FROM results WHERE seq <= ?", (seqs[-1] if seqs else 0,))
    return len(seqs)


def _give_back_pages(connection: sqlite3.Connection) -> None:
    """Shrink the file while over a quarter is free; each ``execute`` frees a page."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    for _ in range(min(free - pages // 4, _VACUUM_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
