"""Deletes old rows, some at a time: raw spans after the late window; after the retention the spans of traces that were
set aside (which have no digest), and everything else."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection

import orjson

from pandaeval_collector.store import listed, people, run_tables
from pandaeval_collector.store.commits import keep_newest
from pandaeval_collector.store.responses import BLOCK_BITS

_VACUUM_PAGES = 256
_DAYS = 62
"""How many keys of spending are kept, of dollars and of tokens: a month."""
_EXPIRE = (
    """DELETE FROM members WHERE session = 0 AND no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < ?
        AND EXISTS (SELECT 1 FROM members WHERE members.no = traces.no AND session = 0) LIMIT ?)""",
    """DELETE FROM members WHERE no IN
       (SELECT members.no FROM sessions JOIN members ON session = sessions.no
        WHERE open = 0 AND touched_at < ? LIMIT ?)""",
    """DELETE FROM sessions WHERE no IN
       (SELECT no FROM sessions WHERE open = 0 AND touched_at < ?
        AND NOT EXISTS (SELECT 1 FROM members WHERE session = sessions.no) LIMIT ?)""",
    """DELETE FROM traces WHERE no IN
       (SELECT no FROM traces WHERE size = 0 AND decided_at < ?
        AND NOT EXISTS (SELECT 1 FROM members WHERE members.no = traces.no) LIMIT ?)""",
)
"""Statements that delete what is older than the retention, a limited number of rows each: senders wait meanwhile."""
_EXPIRE_RESPONSES = """DELETE FROM responses WHERE (block, continued, digest, no) IN
    (SELECT block, continued, digest, no FROM responses
     WHERE block < coalesce((SELECT min(no) >> ? FROM traces), 1 << 60) LIMIT ?)"""
"""Deletes blocks of response digests whose last trace is deleted."""


def forget(
    connection: sqlite3.Connection,
    now: float,
    late_window_s: float,
    retention_s: float,
    keep: Collection[bytes],
    limit: int,
    judged_s: float,
    unlisted_only: bool,
) -> int:
    """See :meth:`pandaeval_collector.store.Store.forget`."""
    rows = connection.execute(
        """SELECT trace_id, chunks, no FROM traces WHERE decided_at < ? AND size > 0
           AND (digest != '' OR decided_at < ?) AND NOT EXISTS
           (SELECT 1 FROM jobs WHERE jobs.trace = traces.no AND jobs.state IN ('due', 'leased'))
           AND NOT (? AND decided_at >= ? AND EXISTS (SELECT 1 FROM listed WHERE listed.no = traces.no))
           ORDER BY decided_at LIMIT ?""",
        (now - late_window_s, now - retention_s, unlisted_only, now - retention_s, limit),
    ).fetchall()
    rows = [row for row in rows if row[0] not in keep]
    if rows:
        keep_newest(connection)
    connection.executemany(
        "DELETE FROM chunks WHERE id = ?", [(chunk,) for _, chunks, _ in rows for chunk in orjson.loads(chunks)]
    )
    connection.executemany(
        "UPDATE traces SET chunks = '[]', known = x'', size = 0 WHERE no = ?", [(row[2],) for row in rows]
    )
    old = now - retention_s
    expired = [connection.execute(statement, (old, limit)).rowcount for statement in _EXPIRE]
    expired.append(connection.execute(_EXPIRE_RESPONSES, (BLOCK_BITS, limit)).rowcount)
    oldest = connection.execute("SELECT seq, created_at FROM results ORDER BY seq LIMIT ?", (limit,))  # in order of age
    results = [seq for seq, _ in itertools.takewhile(lambda row: row[1] < old, oldest)]
    connection.execute("DELETE FROM results WHERE seq <= ?", (results[-1] if results else 0,))
    expired.append(len(results))
    expired.append(listed.forget(connection, limit))
    expired.append(people.forget(connection, now - judged_s, limit))
    expired.append(run_tables.forget(connection, old, limit))
    connection.execute("DELETE FROM jobs WHERE ended_at < ? AND state IN ('done', 'dead', 'cancelled')", (old,))
    connection.execute("DELETE FROM verdicts WHERE created_at < ?", (old,))
    newest_days = "SELECT day FROM spending ORDER BY day DESC LIMIT ?"
    connection.execute(f"DELETE FROM spending WHERE day NOT IN ({newest_days})", (_DAYS,))  # noqa: S608
    _give_back_pages(connection)
    return max(len(rows), *expired)


def _give_back_pages(connection: sqlite3.Connection) -> None:
    """Shrinks the file a little while more than a quarter of it is free: what a busy store frees it soon fills again,
    and giving back a page means to write another one in its place. The pragma gives back one at each step, and
    ``execute`` takes one step."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    for _ in range(min(free - pages // 4, _VACUUM_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
