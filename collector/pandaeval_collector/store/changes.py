"""The writing transactions of the store, each whole or not at all. They run on the writer's thread."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence

import orjson

from pandaeval_collector.store import jobs
from pandaeval_collector.store.rows import ResultRow, SeriesRow, WriteSet, pack_ids

_VACUUM_PAGES = 256
_EXPIRE = (
    """DELETE FROM traces WHERE trace_id IN
       (SELECT trace_id FROM traces WHERE decided_at < ? AND size = 0 ORDER BY decided_at LIMIT ?)""",
    "DELETE FROM results WHERE seq IN (SELECT seq FROM results WHERE created_at < ? ORDER BY created_at LIMIT ?)",
    """DELETE FROM session_traces WHERE trace_id IN
       (SELECT trace_id FROM sessions JOIN session_traces USING (session_id)
        WHERE open = 0 AND touched_at < ? LIMIT ?)""",
    """DELETE FROM sessions WHERE session_id IN
       (SELECT session_id FROM sessions WHERE open = 0 AND touched_at < ?
        AND NOT EXISTS (SELECT 1 FROM session_traces WHERE session_traces.session_id = sessions.session_id) LIMIT ?)""",
)
"""What goes after the retention, so many rows at a time: senders wait while the writer deletes."""
_IDS = 500


def apply(connection: sqlite3.Connection, changes: WriteSet, now: float) -> list[ResultRow]:
    """A decision: trace rows, session members, results, what is to be sent, and the series. Returns the results that
    are new, with their ``seq``."""
    _apply_traces(connection, changes, now)
    _apply_sessions(connection, changes, now)
    jobs.add(connection, changes.jobs, (t.trace_id for t in changes.traces if t.revision > 1), now)
    jobs.end(connection, changes.ended, now)
    connection.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?)", changes.labels)
    connection.executemany(
        "INSERT INTO outbox (signal, created_at, body, size) VALUES (?, ?, ?, ?)",
        [(row.signal, now, row.body, len(row.body)) for row in changes.outbox],
    )
    for added in changes.series:
        _add_to_series(connection, added, now)
    return _insert_results(connection, changes.results, now)


def _apply_traces(connection: sqlite3.Connection, changes: WriteSet, now: float) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (t.trace_id, t.revision, t.final, t.digest, pack_ids(t.known), orjson.dumps(list(t.chunks)), t.size, now)
            for t in changes.traces
        ],
    )


def _apply_sessions(connection: sqlite3.Connection, changes: WriteSet, now: float) -> None:
    connection.executemany("DELETE FROM session_traces WHERE trace_id = ?", [(id_,) for id_ in changes.moved])
    connection.executemany(
        "INSERT OR REPLACE INTO session_traces VALUES (?, ?, ?, ?, ?, ?)",
        [(s.trace_id, s.session_id, s.start_ns, s.end_ns, s.body, s.answer) for s in changes.session_traces],
    )
    for open_, ids in ((1, changes.touched), (0, changes.closed)):
        connection.executemany("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", [(id_, open_, now) for id_ in ids])


def _insert_results(connection: sqlite3.Connection, results: Sequence[ResultRow], now: float) -> list[ResultRow]:
    known = _known_results(connection, list({result.id for result in results}))
    unique = {result.id: result for result in reversed(results)}
    fresh = [r for r in reversed(unique.values()) if r.id not in known or _stands_again(connection, r, known[r.id])]
    newest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'results'").fetchone()
    rows = [
        ResultRow(r.id, r.unit, r.metric, r.revision, r.body, r.counted, seq)
        for seq, r in enumerate(fresh, newest[0] + 1 if newest else 1)
    ]
    connection.executemany(
        """INSERT INTO results (seq, id, unit, metric, revision, counted, created_at, body)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        [(row.seq, row.id, row.unit, row.metric, row.revision, row.counted, now, row.body) for row in rows],
    )
    return rows


def _known_results(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The numbers of those results that are there already."""
    found: dict[str, int] = {}
    for start in range(0, len(ids), _IDS):
        some = ids[start : start + _IDS]
        marks = ",".join("?" * len(some))
        found.update(connection.execute(f"SELECT id, seq FROM results WHERE id IN ({marks})", some))  # noqa: S608
    return found


def _stands_again(connection: sqlite3.Connection, result: ResultRow, seq: int) -> bool:
    """Whether another result has stood in for this known one; if so, it makes room for itself."""
    (newest,) = connection.execute(
        "SELECT max(seq) FROM results WHERE unit = ? AND metric = ?", (result.unit, result.metric)
    ).fetchone()
    if seq == newest:
        return False
    connection.execute("DELETE FROM results WHERE id = ?", (result.id,))
    return True


def _add_to_series(connection: sqlite3.Connection, row: SeriesRow, now: float) -> None:
    key = hashlib.blake2b(f"{row.name}\0{row.attributes}".encode(), digest_size=16).hexdigest()
    found = connection.execute("SELECT count, total, buckets, exemplars FROM series WHERE key = ?", (key,)).fetchone()
    buckets = orjson.loads(found[2]) if found else [0] * row.width
    exemplars = orjson.loads(found[3]) if found else {}
    for index, count in row.buckets.items():
        buckets[index] += count
    exemplars.update({str(index): exemplar for index, exemplar in row.exemplars.items()})
    packed = (orjson.dumps(buckets).decode(), orjson.dumps(exemplars).decode())
    if found:
        connection.execute(
            "UPDATE series SET count = ?, total = ?, buckets = ?, exemplars = ? WHERE key = ?",
            (found[0] + row.count, found[1] + row.total, *packed, key),
        )
    else:
        connection.execute(
            "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (key, row.name, row.attributes, int(now * 1e9), row.count, row.total, *packed),
        )


def forget_sent(connection: sqlite3.Connection, signal: str, seq: int, limit: int) -> int:
    """See :meth:`pandaeval_collector.store.Store.forget_sent`."""
    return connection.execute(
        "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE signal = ? AND seq <= ? ORDER BY seq LIMIT ?)",
        (signal, seq, limit),
    ).rowcount


def drop_unsent(
    connection: sqlite3.Connection, before: float, excess_bytes: int, limit: int
) -> Counter[tuple[str, str]]:
    """See :meth:`pandaeval_collector.store.Store.drop_unsent`."""
    oldest = connection.execute("SELECT seq, signal, created_at, size FROM outbox ORDER BY seq LIMIT ?", (limit,))
    dropped: Counter[tuple[str, str]] = Counter()
    last = freed = 0
    for seq, signal, created_at, size in oldest:
        reason = "too_old" if created_at < before else "disk_share"
        if reason == "disk_share" and freed >= excess_bytes:
            break
        last, freed = seq, freed + size
        dropped[signal, reason] += 1
    connection.execute("DELETE FROM outbox WHERE seq <= ?", (last,))
    return dropped


def forget(
    connection: sqlite3.Connection,
    now: float,
    late_window_s: float,
    retention_s: float,
    keep: Collection[bytes],
    limit: int,
) -> int:
    """See :meth:`pandaeval_collector.store.Store.forget`."""
    rows = connection.execute(
        """SELECT trace_id, chunks FROM traces WHERE decided_at < ? AND size > 0 AND NOT EXISTS
           (SELECT 1 FROM jobs WHERE jobs.trace_id = traces.trace_id AND jobs.state IN ('due', 'leased'))
           ORDER BY decided_at LIMIT ?""",
        (now - late_window_s, limit),
    ).fetchall()
    rows = [row for row in rows if row[0] not in keep]
    connection.executemany(
        "DELETE FROM chunks WHERE id = ?", [(chunk,) for _, chunks in rows for chunk in orjson.loads(chunks)]
    )
    connection.executemany(
        "UPDATE traces SET chunks = '[]', known = x'', size = 0 WHERE trace_id = ?", [(row[0],) for row in rows]
    )
    old = now - retention_s
    expired = [connection.execute(statement, (old, limit)).rowcount for statement in _EXPIRE]
    jobs.forget(connection, old)
    _give_back_pages(connection)
    return max(len(rows), *expired)


def _give_back_pages(connection: sqlite3.Connection) -> None:
    """Shrinks the file a little. The pragma gives back a page at each step, and ``execute`` takes one step."""
    free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
    for _ in range(min(free, _VACUUM_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
