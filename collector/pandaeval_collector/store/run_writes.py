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


def _values(run: int, r: RunResult) -> tuple[object, ...]:
    return run, r.about, r.metric, r.outcome, r.score, r.success, r.cost_usd, r.by, r.body


def forget(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Deletes what runs that ended before a time found, so many rows at a time, and then the runs."""
    gone = 0
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
