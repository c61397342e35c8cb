"""What is written of evaluation runs within transactions of others: a new run, what a batch came to, what is old."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence

from pandaeval_collector.store.run_rows import ENDED, RUN, RunBatch, RunResult, RunRow


def insert(
    connection: sqlite3.Connection, body: bytes, now: float, key: str | None = None, schedule: str = ""
) -> RunRow:
    """A new run over the traces that there are. ``now``: of the store's calendar."""
    (upto,) = connection.execute("SELECT coalesce(max(no), 0) FROM listed").fetchone()
    row = connection.execute(
        f"""INSERT INTO runs (id, key, schedule, state, created_at, upto, body) VALUES (?, ?, ?, 'queued', ?, ?, ?)
            RETURNING {RUN}""",  # noqa: S608
        (secrets.token_hex(8), key, schedule, now, max(0, upto), body),
    ).fetchone()
    return RunRow(*row)


def add(connection: sqlite3.Connection, batches: Sequence[RunBatch]) -> None:
    """What a batch of a run came to: results, which take the place of earlier ones, and states of its items."""
    for batch in batches:
        _stand_beside(connection, batch)
        connection.executemany(
            """INSERT OR REPLACE INTO run_results (run, about, metric, outcome, score, success, cost_usd, by, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [_values(batch.run, each) for each in batch.results],
        )
        changed = {"done": 0, "failed": 0}
        for no, why in batch.items:
            state = "failed" if why else "done"
            changed[state] += connection.execute(
                "UPDATE run_items SET state = ?, why = ? WHERE run = ? AND no = ? AND state = 'pending'",
                (state, why, batch.run, no),
            ).rowcount
        connection.execute(
            """UPDATE runs SET done = done + ?, failed = failed + ?, calls = calls + ?, tokens = tokens + ?,
               cost_usd = cost_usd + ? WHERE no = ?""",
            (changed["done"], changed["failed"], batch.calls, batch.tokens, batch.cost_usd, batch.run),
        )


def _stand_beside(connection: sqlite3.Connection, batch: RunBatch) -> None:
    if batch.beside:
        added = connection.executemany(
            "INSERT OR IGNORE INTO run_items (run, no, grp, state) VALUES (?, ?, ?, 'pending')",
            [(batch.run, no, session) for no, session in batch.beside],
        ).rowcount
        connection.execute("UPDATE runs SET total = total + ? WHERE no = ?", (max(0, added), batch.run))


def _values(run: int, r: RunResult) -> tuple[object, ...]:
    return run, r.about, r.metric, r.outcome, r.score, r.success, r.cost_usd, r.by, r.body


def forget(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Deletes what runs that ended before a time found, so many rows at a time, and then the runs; and of those that
    stand what is about traces that are deleted."""
    gone = _forget_standing(connection, limit)
    for (no,) in connection.execute(
        f"SELECT no FROM runs WHERE state IN {ENDED} AND ended_at < ? LIMIT 10",  # noqa: S608
        (before,),
    ).fetchall():
        for table, key in (("run_results", "seq"), ("run_items", "no")):
            gone += connection.execute(
                f"DELETE FROM {table} WHERE run = ? AND {key} IN (SELECT {key} FROM {table} WHERE run = ? LIMIT ?)",  # noqa: S608
                (no, no, max(0, limit - gone)),
            ).rowcount
        if gone >= limit:
            break
        connection.execute("DELETE FROM runs WHERE no = ?", (no,))
    return gone


def _forget_standing(connection: sqlite3.Connection, limit: int) -> int:
    (first,) = connection.execute("SELECT coalesce(min(no), 0) FROM traces").fetchone()
    gone = 0
    for (run,) in connection.execute("SELECT no FROM runs WHERE state = 'standing'").fetchall():
        for table, key, about in (("run_results", "seq", "about"), ("run_items", "no", "no")):
            gone += connection.execute(
                f"""DELETE FROM {table} WHERE run = ? AND {key} IN
                    (SELECT {key} FROM {table} WHERE run = ? AND {about} < ? LIMIT ?)""",  # noqa: S608
                (run, run, first, limit),
            ).rowcount
    return gone
