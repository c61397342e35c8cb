"""Finds traces, sessions and results for people: a page at a time, on connections of its own that give up after a time
limit, so that no question, however it is put, holds up the line."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.store import numbers, people, tally
from pandaeval_collector.store.chunk_reader import Part
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.kept import contents
from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_collector.store.wanted import Wanted, conditions, result_conditions

_STEPS = 20_000
"""Steps of SQLite's machine between two looks at the clock: some milliseconds."""

Position = tuple[float, int]
"""Where a page of a list ended: the value that it is ordered by, and the number of the last row."""


class TooSlowError(Exception):
    """A question took longer than the time limit: it has to be narrowed down."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of a list. ``facts``: as :func:`pandaeval_collector.line.listing.shown_facts` makes them; ``session``: its
    id, if it belongs to one; ``results``: the newest of each metric, JSON objects of results by metric key."""

    no: int
    session: str | None
    badness: float
    failures: int
    facts: Mapping[str, Any]
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.badness < NOT_FAILED

    @property
    def worst(self) -> float:
        """Its worst signal, 0..1, or :data:`pandaeval_collector.store.listed.NO_SCORE`."""
        return self.badness if self.failed else self.badness - NOT_FAILED


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session in a list, or a trace that belongs to none (``id`` is ``None`` then). ``traces``: how many it has;
    ``worst``: the row of its worst trace, ``None`` where only the session's own results are known; ``results``: the
    session's own."""

    id: str | None
    no: int
    position: Position
    traces: int
    failed_traces: int
    first_ms: int
    last_ms: int
    failed: bool
    worst: Listed | None
    results: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Counted:
    """A counter's series: how often what its attributes say."""

    attributes: Mapping[str, Any]
    times: int


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list; ``next``: where the next page begins, ``None`` after the last."""

    rows: Sequence[Any]
    next: Position | None


class Finder:
    """Reads one store's file. Safe from any thread; each thread that reads has a connection."""

    def __init__(self, path: Path, limit_s: float = 5.0) -> None:
        """``path``: the data directory. ``limit_s``: how long a question may take."""
        self._file, self._limit_s = path / FILE_NAME, limit_s
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._opening = threading.Lock()

    def close(self) -> None:
        """Closes the connections of all threads."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def traces(
        self, wanted: Wanted, *, worst_first: bool = True, after: Position | None = None, limit: int = 50
    ) -> Page:
        """Agents' traces, worst first or newest first, as :class:`Listed` with their results. Raises
        :class:`TooSlowError`."""
        where, values = conditions(wanted)
        where.append("no > 0")
        with self._reading() as reader:
            if worst_first:
                rows = _worst_first(reader, where, values, after, limit + 1)
            else:
                rows = _newest_first(reader, where, values, after, limit + 1)
            shown = self._listed(reader, [row[:5] for row in rows[:limit]])
        return Page(shown, _next(rows, limit))

    def sessions(self, wanted: Wanted, *, after: Position | None = None, limit: int = 50) -> Page:
        """Sessions and traces without one, worst first by the worst of their rows, as :class:`ListedSession`. Raises
        :class:`TooSlowError`."""
        where, values = conditions(wanted)
        # A session stands where its worst row that is wanted does.
        others, more = conditions(wanted, "o")
        others += ["o.session = l.session", "(o.badness, o.no) < (l.badness, l.no)"]
        where.append(f"(session = 0 OR NOT EXISTS (SELECT 1 FROM listed AS o WHERE {' AND '.join(others)}))")  # noqa: S608
        values += more
        with self._reading() as reader:
            rows = _worst_first(reader, where, values, after, limit + 1)
            shown = [self._session(reader, row) for row in rows[:limit]]
        return Page(shown, _next(rows, limit))

    def session(self, session_id: str) -> tuple[ListedSession, list[Listed]] | None:
        """A session, and its traces by start; ``None`` for one that is not there."""
        with self._reading() as reader:
            number = numbers.of_sessions(reader, [session_id]).get(session_id)
            rows = reader.execute(
                """SELECT no, session, badness, failures, facts FROM listed WHERE session = ? AND no > 0
                   ORDER BY at, no LIMIT 2000""",
                (number,),
            ).fetchall()
            if number is None or not rows:
                return None
            traces = self._listed(reader, rows)
            worst = min(traces, key=lambda row: (row.badness, row.no))
            facts = orjson.dumps(worst.facts)
            return self._session(reader, (worst.no, number, worst.badness, worst.failures, facts)), traces

    def trace(self, trace_id: bytes) -> Listed | None:
        """The row of one trace."""
        with self._reading() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
            rows = reader.execute(
                "SELECT no, session, badness, failures, facts FROM listed WHERE no = ?", (no,)
            ).fetchall()
            return self._listed(reader, rows)[0] if rows else None

    def contents(self, trace_id: bytes) -> list[Part]:
        """What is stored of a trace, oldest first; empty where its spans are not kept (any more)."""
        with self._reading() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
            return [] if no is None else contents(reader, no)

    def results(self, wanted: Wanted, *, before: int | None = None, limit: int = 100) -> Page:
        """JSON objects of results, newest first, all revisions. ``before``: the number at which the last page ended."""
        where, values = result_conditions(wanted, "r")
        if before is not None:
            where.append("r.seq < ?")
            values.append(before)
        of_units, more = conditions(wanted.of_unit(), "l")
        if of_units:
            where.append(f"EXISTS (SELECT 1 FROM listed AS l WHERE l.no = r.about AND {' AND '.join(of_units)})")  # noqa: S608
            values += more
        with self._reading() as reader:
            rows = reader.execute(
                f"""SELECT r.body, r.seq FROM results AS r WHERE {" AND ".join(where) or "1"}
                    ORDER BY r.seq DESC LIMIT ?""",  # noqa: S608
                (*values, limit + 1),
            ).fetchall()
        found = [orjson.loads(body) for body, _ in rows[:limit]]
        return Page(found, (0.0, rows[limit - 1][1]) if len(rows) > limit else None)

    def labels(self, units: Sequence[str], metric: str | None, *, before: int | None = None, limit: int = 100) -> Page:
        """People's verdicts, newest first, about any of ``units`` (all, if empty) and one metric (or all). ``before``:
        the number at which the last page ended."""
        with self._reading() as reader:
            rows = people.page(reader, units, metric, before, limit + 1)
        return Page([label for _, label in rows[:limit]], (0.0, rows[limit - 1][0]) if len(rows) > limit else None)

    def names(self) -> dict[str, list[str]]:
        """Agents, services and environments that there are, to choose from."""
        with self._reading() as reader:
            return {
                name: [
                    row[0]
                    for row in reader.execute(
                        f"SELECT DISTINCT {name} FROM listed WHERE no > 0 AND {name} != '' ORDER BY 1 LIMIT 200"  # noqa: S608
                    )
                ]
                for name in ("agent", "service", "environment")
            }

    def counters(self, name: str) -> list[Counted]:
        """All series of a counter, at most 20,000."""
        with self._reading() as reader:
            rows = reader.execute("SELECT attributes, total FROM series WHERE name = ? LIMIT 20000", (name,)).fetchall()
        return [Counted(dict(tally.attributes_of(attributes)), int(total)) for attributes, total in rows]

    def change(self) -> str:
        """A text that changes when anything in the store's lists does."""
        with self._reading() as reader:
            (seq,) = reader.execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()
            (no,) = reader.execute("SELECT coalesce(max(no), 0) FROM listed").fetchone()
        return f"{seq}-{no}"

    # -- in a read -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The calling thread's connection, within a snapshot and the time limit."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._file, "off", read_only=True)
            with self._opening:
                self._open.append(connection)
        until = time.monotonic() + self._limit_s
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        connection.rollback()
        connection.execute("BEGIN")
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise TooSlowError(
                    f"this took longer than {self._limit_s:g} s: narrow it down by time or agent"
                ) from error
            raise
        finally:
            connection.set_progress_handler(None, 0)
            connection.rollback()

    def _listed(self, reader: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Listed]:
        results = _results_about(reader, [row[0] for row in rows])
        names = _names_of(reader, {row[1] for row in rows} - {0})
        return [
            Listed(no, names.get(session), badness, failures, orjson.loads(facts or b"{}"), results.get(no, {}))
            for no, session, badness, failures, facts in rows
        ]

    def _session(self, reader: sqlite3.Connection, row: Sequence[Any]) -> ListedSession:
        no, session, badness = row[0], row[1], row[2]
        if not session:
            (alone,) = self._listed(reader, [tuple(row[:5])])
            at = int(alone.facts.get("at", 0))
            return ListedSession(None, no, (badness, no), 1, int(alone.failed), at, at, alone.failed, alone, {})
        traces, failed, first, last = reader.execute(
            "SELECT count(*), total(badness < ?), min(at), max(at) FROM listed WHERE session = ? AND no > 0",
            (NOT_FAILED, session),
        ).fetchone()
        worst = (
            row
            if no > 0
            else reader.execute(
                """SELECT no, session, badness, failures, facts FROM listed WHERE session = ? AND no > 0
               ORDER BY badness, no LIMIT 1""",
                (session,),
            ).fetchone()
        )
        return ListedSession(
            _names_of(reader, [session]).get(session),
            session,
            (badness, no),
            traces,
            int(failed),
            first or 0,
            last or 0,
            badness < NOT_FAILED,
            self._listed(reader, [tuple(worst[:5])])[0] if worst else None,
            _results_about(reader, [-session]).get(-session, {}),
        )


Row = tuple[Any, ...]
"""Number, session, badness, failures, facts, and the value that the list is ordered by."""


def _worst_first(
    reader: sqlite3.Connection, where: Sequence[str], values: Sequence[Any], after: Position | None, limit: int
) -> list[Row]:
    """What failed comes by its index, and what did not by a scan, where the page reaches so far."""
    rows: list[Row] = []
    if after is None or after[0] < NOT_FAILED:
        rows += _by_badness(reader, [*where, f"badness < {NOT_FAILED:g}"], values, after, limit)
    if len(rows) < limit:
        rows += _by_badness(reader, [*where, f"badness >= {NOT_FAILED:g}"], values, after, limit - len(rows))
    return rows


def _by_badness(
    reader: sqlite3.Connection, where: list[str], values: Sequence[Any], after: Position | None, limit: int
) -> list[Row]:
    if after is not None:
        where.append("(badness, no) > (?, ?)")
    query = f"""SELECT no, session, badness, failures, facts, badness FROM listed AS l
                WHERE {" AND ".join(where)} ORDER BY badness, no LIMIT ?"""  # noqa: S608
    return reader.execute(query, (*values, *(after or ()), limit)).fetchall()


def _newest_first(
    reader: sqlite3.Connection, where: list[str], values: Sequence[Any], after: Position | None, limit: int
) -> list[Row]:
    if after is not None:
        where.append("(at, no) < (?, ?)")
    query = f"""SELECT no, session, badness, failures, facts, at FROM listed AS l
                WHERE {" AND ".join(where)} ORDER BY at DESC, no DESC LIMIT ?"""  # noqa: S608
    return reader.execute(query, (*values, *(after or ()), limit)).fetchall()


def _next(rows: Sequence[Sequence[Any]], limit: int) -> Position | None:
    return (rows[limit - 1][5], rows[limit - 1][0]) if len(rows) > limit else None


def _results_about(reader: sqlite3.Connection, about: Sequence[int]) -> dict[int, dict[str, Mapping[str, Any]]]:
    found: dict[int, dict[str, Mapping[str, Any]]] = {}
    for marks, group in numbers.batched(about):
        rows = reader.execute(
            f"SELECT about, metric, body FROM results WHERE about IN ({marks}) ORDER BY seq",  # noqa: S608
            group,
        )
        for number, metric, body in rows:
            found.setdefault(number, {})[metric] = orjson.loads(body)
    return found


def _names_of(reader: sqlite3.Connection, sessions: Sequence[int] | set[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for marks, group in numbers.batched(sessions):
        found.update(reader.execute(f"SELECT no, session_id FROM sessions WHERE no IN ({marks})", group))  # noqa: S608
    return found
