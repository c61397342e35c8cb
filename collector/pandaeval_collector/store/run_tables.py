"""The tables of evaluation runs: for those who only read, also beside a collector that works on it, and what is written
within transactions of others."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import Any

from pandaeval_collector.store import numbers
from pandaeval_collector.store.run_rows import ENDED, RUN, RunBatch, RunRow
from pandaeval_collector.store.wanted import Wanted, conditions


# What is written of evaluation runs within transactions of others: a new run, what a batch came to, what is old.
def insert(
    connection: sqlite3.Connection, body: bytes, now: float, key: str | None = None, schedule: str = ""
) -> RunRow:
    """Inserts a queued run over the traces that there are. ``now``: of the store's calendar."""
    (upto,) = connection.execute("SELECT coalesce(max(no), 0) FROM listed").fetchone()
    row = connection.execute(
        f"""INSERT INTO runs (id, key, schedule, state, created_at, upto, body) VALUES (?, ?, ?, 'queued', ?, ?, ?)
            RETURNING {RUN}""",  # noqa: S608
        (secrets.token_hex(8), key, schedule, now, max(0, upto), body),
    ).fetchone()
    return RunRow(*row)


def add(connection: sqlite3.Connection, batches: Sequence[RunBatch]) -> None:
    """Stores what batches of runs came to: results, which replace earlier ones, and states of their items."""
    for batch in batches:
        if batch.beside:
            added = connection.executemany(
                "INSERT OR IGNORE INTO run_items (run, no, grp, state) VALUES (?, ?, ?, 'pending')",
                [(batch.run, no, session) for no, session in batch.beside],
            ).rowcount
            connection.execute("UPDATE runs SET total = total + ? WHERE no = ?", (added, batch.run))
        connection.executemany(
            """INSERT OR REPLACE INTO run_results (run, about, metric, outcome, score, success, cost_usd, by, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [(batch.run, *astuple(each)) for each in batch.results],
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


def forget(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Deletes the results and items of runs that ended before a time, up to ``limit`` rows, and then the runs; and
    those of standing runs that are about deleted traces. Returns how many rows."""
    gone = 0
    (first,) = connection.execute("SELECT coalesce(min(no), 0) FROM traces").fetchone()
    for (run,) in connection.execute("SELECT no FROM runs WHERE state = 'standing'").fetchall():
        for table, key, about in (("run_results", "seq", "about"), ("run_items", "no", "no")):
            gone += connection.execute(
                f"""DELETE FROM {table} WHERE run = ? AND {key} IN
                    (SELECT {key} FROM {table} WHERE run = ? AND {about} < ? LIMIT ?)""",  # noqa: S608
                (run, run, first, limit),
            ).rowcount
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


_PAGE = 2000
"""Traces that are looked through in one read when a run is planned."""


class RunReads:
    """Reads the runs of one store. Safe from any thread that ``reader`` has a connection for."""

    def __init__(self, reader: Callable[[], sqlite3.Connection]) -> None:
        self._reader = reader

    def find(self, id_: str) -> RunRow | None:
        """Looks up a run by its id."""
        row = self._reader().execute(f"SELECT {RUN} FROM runs WHERE id = ?", (id_,)).fetchone()  # noqa: S608
        return None if row is None else RunRow(*row)

    def ids_from(self, prefix: str, most: int = 5) -> list[str]:
        """Returns at most ``most`` ids of runs that begin with a prefix."""
        query = "SELECT id FROM runs WHERE id >= ? AND id < ? LIMIT ?"
        return [id_ for (id_,) in self._reader().execute(query, (prefix, prefix + chr(0x10FFFF), most))]

    def newest(self, before: int | None = None, limit: int = 50) -> list[RunRow]:
        """Returns runs, newest first. ``before``: the number at which the last page ended."""
        rows = self._reader().execute(
            f"SELECT {RUN} FROM runs WHERE no < ? ORDER BY no DESC LIMIT ?",  # noqa: S608
            (1 << 62 if before is None else before, limit),
        )
        return [RunRow(*row) for row in rows]

    def placed(self, trace_id: bytes) -> tuple[int, int] | None:
        """The number of a listed trace, and that of its session (0: none)."""
        reader = self._reader()
        no = numbers.of_traces(reader, [trace_id]).get(trace_id)
        row = reader.execute("SELECT no, session FROM listed WHERE no = ?", (no,)).fetchone()
        return None if row is None else (row[0], row[1])

    def next(self) -> RunRow | None:
        """Returns the run to go on with: one that is running, else the oldest that is queued."""
        for state in ("running", "queued"):
            query = f"SELECT {RUN} FROM runs WHERE state = ? ORDER BY no LIMIT 1"  # noqa: S608
            row = self._reader().execute(query, (state,)).fetchone()
            if row is not None:
                return RunRow(*row)
        return None

    def chosen(
        self, wanted: Wanted, after: int, upto: int, decided: tuple[float, float] | None = None
    ) -> tuple[list[tuple[int, int, bytes, str | None]], int]:
        """Returns a page of wanted traces above number ``after``, as (number, number of the session, id, id of the
        session), and the number up to which all were looked at. ``decided``: in this time of the calendar. Blocks."""
        where, values = conditions(wanted)
        if decided is not None:
            where.append("t.decided_at > ? AND t.decided_at <= ?")
            values += decided
        among = " AND ".join(["l.no > ?", "l.no <= ?", *where])
        reader = self._reader()
        last = reader.execute(
            "SELECT max(no) FROM (SELECT no FROM listed WHERE no > ? AND no <= ? ORDER BY no LIMIT ?)",
            (after, upto, _PAGE),
        ).fetchone()[0]
        if last is None:
            return [], upto
        rows = reader.execute(
            f"""SELECT l.no, l.session, t.trace_id, s.session_id FROM listed AS l JOIN traces AS t ON t.no = l.no
                LEFT JOIN sessions AS s ON s.no = l.session WHERE {among} ORDER BY l.no""",  # noqa: S608
            (after, last, *values),
        )
        return rows.fetchall(), int(last)

    def pending(self, no: int, limit: int) -> list[tuple[int, int]]:
        """Returns about ``limit`` items (trace, session) that a run has yet to do; all of a session come together."""
        reader, query = self._reader(), "SELECT no, grp FROM run_items WHERE run = ? AND state = 'pending'"
        rows: list[tuple[int, int]] = reader.execute(f"{query} ORDER BY grp, no LIMIT ?", (no, limit + 1)).fetchall()
        if len(rows) <= limit or not rows[-1][1]:
            return rows[:limit]
        last = rows[-1][1]
        whole = [row for row in rows if row[1] != last]
        return whole or reader.execute(f"{query} AND grp = ? ORDER BY no", (no, last)).fetchall()

    def items(self, no: int, state: str, limit: int) -> list[tuple[str, str]]:
        """Returns (trace id, why) of a run's items in a state."""
        rows = self._reader().execute(
            """SELECT lower(hex(trace_id)), why FROM run_items JOIN traces ON traces.no = run_items.no
               WHERE run = ? AND state = ? LIMIT ?""",
            (no, state, limit),
        )
        return rows.fetchall()

    def results(
        self, no: int, after: int = 0, limit: int = 100, metric: str | None = None
    ) -> tuple[list[bytes], int | None]:
        """Returns a page of a run's results as JSON objects, in order of arrival, and where the next page begins."""
        query = """SELECT body, seq FROM run_results WHERE run = ? AND seq > ? AND (? IS NULL OR metric = ?)
                   ORDER BY seq LIMIT ?"""
        rows = self._reader().execute(query, (no, after, metric, metric, limit + 1)).fetchall()
        return [bytes(row[0]) for row in rows[:limit]], rows[limit - 1][1] if len(rows) > limit else None

    def counts(self, no: int) -> dict[tuple[str, str], int]:
        """Counts the results of a run by (metric, outcome)."""
        rows = self._reader().execute(
            "SELECT metric, outcome, count(*) FROM run_results WHERE run = ? GROUP BY metric, outcome", (no,)
        )
        return {(metric, outcome): count for metric, outcome, count in rows}

    def pairs(self, first: int, second: int | None) -> Iterator[tuple[Any, ...]]:
        """Yields (metric, about, session, score, success, by) of one run and the last three of another, for each unit
        and metric that both have a result of. ``second`` of ``None`` stands for the live results that stand. Reads as
        it goes, on a connection of the calling thread."""
        if second is not None:
            return self._reader().execute(
                """SELECT a.metric, a.about, coalesce(i.grp, 0), a.score, a.success, a.by, b.score, b.success, b.by
                   FROM run_results AS a
                   JOIN run_results AS b ON b.run = ? AND b.metric = a.metric AND b.about = a.about
                   LEFT JOIN run_items AS i ON i.run = a.run AND i.no = a.about
                   WHERE a.run = ? ORDER BY a.metric""",
                (second, first),
            )
        return self._reader().execute(
            """SELECT a.metric, a.about, coalesce(i.grp, 0), a.score, a.success, a.by,
                      json_extract(CAST(b.body AS TEXT), '$.score'), b.success,
                      json_extract(CAST(b.body AS TEXT), '$.evaluator.version') || ' ' ||
                      coalesce(json_extract(CAST(b.body AS TEXT), '$.evaluator.model'), '')
               FROM run_results AS a JOIN results AS b ON b.seq =
                    (SELECT max(seq) FROM results AS r WHERE r.about = a.about AND r.metric = a.metric)
               LEFT JOIN run_items AS i ON i.run = a.run AND i.no = a.about
               WHERE a.run = ? ORDER BY a.metric""",
            (first,),
        )

    def body(self, no: int, metric: str, about: int) -> bytes | None:
        """Returns the JSON object of one result of a run."""
        query = "SELECT body FROM run_results WHERE run = ? AND metric = ? AND about = ?"
        row = self._reader().execute(query, (no, metric, about)).fetchone()
        return None if row is None else bytes(row[0])
