"""Finds traces, sessions and results for display, in pages with a time limit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from pandaeval_collector.store import listed_pages as pages, numbers, people
from pandaeval_collector.store.chunks import Part, contents
from pandaeval_collector.store.connection import Connections
from pandaeval_collector.store.listed import NOT_FAILED, Wanted, chosen_by_index, conditions, result_conditions
from pandaeval_collector.store.listed_pages import (
    COLUMNS,
    OF_SESSION,
    Listed,
    ListedSession,
    Position,
    end_of,
    listed_of,
    results_about,
    sessions_of,
)

_T = TypeVar("_T")
_NAMES_AGE = 50.0
"""Names are read again after this multiple of their reading time, so reading takes at most 2 % of the time."""
_PAGE = 200
"""Rows of a page that :func:`every` reads."""
_WORSE_OF_SESSION = "o.session = l.session AND o.session > 0 AND (o.badness, o.no) < (l.badness, l.no)"


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list. ``next``: start of the next page, or ``None``."""

    rows: Sequence[Any]
    next: Position | None


def every(find: Callable[..., Page], wanted: Wanted, **options: Any) -> Iterator[Any]:
    """Yield all rows, page by page. ``options``: arguments of ``find``."""
    after = None
    while True:
        page = find(wanted, after=after, limit=_PAGE, **options)
        yield from page.rows
        after = page.next
        if after is None:
            return


class Finder:
    """Reads one store, with a connection per thread.

    All queries raise :class:`pandaeval_collector.store.connection.TooSlowError`.
    """

    def __init__(self, path: Path, limit_s: float = 5.0) -> None:
        self.reads = Connections(path, limit_s)
        self._names: tuple[float, dict[str, list[str]]] | None = None

    def close(self) -> None:
        self.reads.close()

    def connection(self) -> sqlite3.Connection:
        return self.reads.own()

    def read(self, query: str, *values: object) -> list[Any]:
        with self.reads.snapshot() as reader:
            return reader.execute(query, values).fetchall()

    def of_traces(self, wanted: Wanted, columns: str, rest: str = "", *first: object) -> list[Any]:
        """Read ``columns`` of wanted traces. ``first``: values in the columns."""
        where = conditions(wanted)
        query = f"SELECT {columns} FROM listed AS l WHERE {where} AND +no > 0 {rest}"  # noqa: S608
        return self.read(query, *first, *where.values)

    def traces(
        self, wanted: Wanted, *, worst_first: bool = True, after: Position | None = None, limit: int = 50
    ) -> Page:
        """Return a page of agents' traces, worst or newest first, with results."""
        find = pages.worst_first if worst_first else pages.newest_first
        with self.reads.snapshot() as reader:
            rows = find(reader, wanted, conditions(wanted).also("+no > 0"), after, limit + 1)
            shown = listed_of(reader, rows[:limit])
        return Page(shown, end_of(rows, limit, "badness" if worst_first else "at"))

    def sessions(self, wanted: Wanted, *, after: Position | None = None, limit: int = 50) -> Page:
        """Return a page of sessions and traces without a session, by their worst row."""
        # The position of a session is the position of its worst wanted row.
        where, others = conditions(wanted), conditions(wanted, "o")
        worse = f"SELECT 1 FROM listed AS o WHERE {others} AND {_WORSE_OF_SESSION}"  # noqa: S608
        first, values = f"(session = 0 OR NOT EXISTS ({worse}))", others.values
        if wanted.text is not None:  # the other rows are read only if a row has the text
            first, values = f"CASE WHEN {where} THEN {first} ELSE 0 END", where.values + values
        with self.reads.snapshot() as reader:
            rows = pages.worst_first(reader, wanted, where.also(first, *values), after, limit + 1)
            shown = sessions_of(reader, rows[:limit])
        return Page(shown, end_of(rows, limit, "badness"))

    def session(self, session_id: str, most: int = 2000) -> tuple[ListedSession, list[Listed]] | None:
        """Return a session with its ``most`` worst traces, else ``None``."""
        with self.reads.snapshot() as reader:
            number = numbers.of_sessions(reader, [session_id]).get(session_id)
            rows = reader.execute(
                f"SELECT {COLUMNS} FROM listed WHERE {OF_SESSION} ORDER BY badness, no LIMIT ?",  # noqa: S608
                (number, most),
            ).fetchall()
            if number is None or not rows:
                return None
            standing = reader.execute(
                f"SELECT {COLUMNS} FROM listed WHERE session = ? AND session > 0 ORDER BY badness, no LIMIT 1",  # noqa: S608
                (number,),
            ).fetchall()
            [whole] = sessions_of(reader, standing)
            traces = listed_of(reader, rows)
        return whole, sorted(traces, key=lambda row: (row.facts.get("at", 0), row.no))

    def members(self, session_id: str, most: int = 2000) -> list[str]:
        rows = self.read(
            """SELECT trace_id FROM listed JOIN traces USING (no) WHERE listed.no > 0 AND listed.session > 0
               AND listed.session = (SELECT no FROM sessions WHERE session_id = ?) ORDER BY at, listed.no LIMIT ?""",
            *(session_id, most),
        )
        return [trace_id.hex() for (trace_id,) in rows]

    def counts(self, wanted: Wanted) -> tuple[int, int] | None:
        """Count wanted and failed traces; ``None`` if that needs a full scan."""
        if not chosen_by_index(replace(wanted, since_ms=0)):
            return None
        [(traces, failed)] = self.of_traces(wanted, "count(*), total(badness < ?)", "", NOT_FAILED)
        return traces, int(failed)

    def count(self, wanted: Wanted) -> int:
        return int(self.of_traces(wanted, "count(*)")[0][0])

    def of_sessions(self, session_ids: Sequence[str]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """Return the newest session results as JSON objects, by session id and metric key."""
        with self.reads.snapshot() as reader:
            known = numbers.of_sessions(reader, session_ids)
            results = results_about(reader, [-no for no in known.values()])
        return {session_id: results.get(-no, {}) for session_id, no in known.items()}

    def trace(self, trace_id: bytes) -> Listed | None:
        with self.reads.snapshot() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
        return None if no is None else self.listed([no]).get(no)

    def listed(self, nos: Collection[int]) -> dict[int, Listed]:
        with self.reads.snapshot() as reader:
            query = f"SELECT {COLUMNS} FROM listed WHERE no > 0 AND no IN ({{marks}})"  # noqa: S608
            return {row.no: row for row in listed_of(reader, [*numbers.each_of(reader, query, nos)])}

    def traces_from(self, prefix: str, most: int = 2) -> list[str]:
        ends = [bytes.fromhex(prefix.ljust(32, digit)) for digit in "0f"]
        with self.reads.snapshot() as reader:
            rows = reader.execute(
                """SELECT trace_id FROM traces JOIN listed USING (no) WHERE traces.no >> 13 IN
                   (SELECT value FROM json_each(?)) AND trace_id BETWEEN ? AND ? LIMIT ?""",
                (numbers.blocks(reader), *ends, most),
            ).fetchall()
        return [trace_id.hex() for (trace_id,) in rows]

    def sessions_from(self, prefix: str, most: int = 2) -> list[str]:
        query = "SELECT session_id FROM sessions WHERE session_id >= ? AND session_id < ? LIMIT ?"
        return [id_ for (id_,) in self.read(query, prefix, prefix + chr(0x10FFFF), most)]

    def is_named(self, column: Literal["agent", "service", "environment", "user"], name: str) -> bool:
        """Return whether a listed trace has this agent, service, environment or user."""
        return bool(self.read(f"SELECT 1 FROM listed WHERE {column} = ? AND +no > 0 LIMIT 1", name))  # noqa: S608

    def attribute_keys(self, most: int = 2000) -> list[str]:
        query = "SELECT DISTINCT substr(pair, 1, instr(pair, '=') - 1) FROM attribute_pairs LIMIT ?"
        return sorted(key for (key,) in self.read(query, most))

    def attribute_values(self, key: str) -> list[str]:
        """Return at most 200 values of an attribute by which traces are found, newest first."""
        query = "SELECT substr(pair, ?) FROM attribute_pairs WHERE pair >= ? AND pair < ? ORDER BY id DESC LIMIT 200"
        return [value for (value,) in self.read(query, len(key) + 2, f"{key}=", f"{key}>")]

    def users(self) -> list[str]:
        """Return at most 200 users of the newest 20,000 runs."""
        newest = "SELECT user FROM listed WHERE +no > 0 ORDER BY at DESC LIMIT 20000"
        query = f"SELECT DISTINCT user FROM ({newest}) WHERE user > '' LIMIT 200"  # noqa: S608
        return [user for (user,) in self.read(query)]

    def contents(self, trace_id: bytes) -> list[Part]:
        with self.reads.snapshot() as reader:
            return contents(reader, trace_id)

    def results(self, wanted: Wanted, *, after: Position | None = None, limit: int = 100) -> Page:
        """Return a page of results of all revisions, newest first."""
        where, unit = result_conditions(wanted), conditions(wanted.of_unit())
        if after is not None:
            where = where.also("r.seq < ?", after[1])
        if unit.conditions:
            where = where.also(f"EXISTS (SELECT 1 FROM listed AS l WHERE l.no = r.about AND {unit})", *unit.values)  # noqa: S608
        query = f"SELECT r.seq, r.body FROM results AS r WHERE {where} ORDER BY r.seq DESC LIMIT ?"  # noqa: S608
        rows = self.read(query, *where.values, limit + 1)
        return _numbered([(seq, orjson.loads(body)) for seq, body in rows], limit)

    def standing(self, unit: str, metric: str) -> Mapping[str, Any] | None:
        """Return the newest result of a metric about a unit as a JSON object."""
        with self.reads.snapshot() as reader:
            [about] = numbers.of_units(reader, [unit]) or [0]
        query = "SELECT body FROM results WHERE about = ? AND metric = ? AND unit = ? ORDER BY seq DESC LIMIT 1"
        rows = self.read(query, about, metric, unit)
        return orjson.loads(rows[0][0]) if rows else None

    def labels(self, units: Sequence[str], metric: str | None, *, before: int | None = None, limit: int = 100) -> Page:
        """Return a page of people's verdicts, newest first. Empty ``units`` means all."""
        with self.reads.snapshot() as reader:
            return _numbered(people.page(reader, units, metric, before, limit + 1), limit)

    def labelled(self, calculate: Callable[[sqlite3.Connection], list[_T]]) -> list[_T]:
        with self.reads.snapshot() as reader:
            (known,) = reader.execute("SELECT EXISTS (SELECT 1 FROM people_labels)").fetchone()
            return calculate(reader) if known else []

    def oldest(self, wanted: Wanted) -> int | None:
        """Return the start of the first wanted run in Unix milliseconds, else ``None``."""
        at: int | None = self.of_traces(wanted, "min(at)")[0][0]
        return at

    def bodies(self, seqs: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        query = "SELECT seq, body FROM results WHERE seq IN (SELECT value FROM json_each(?))"
        return {seq: orjson.loads(body) for seq, body in self.read(query, numbers.json_list(seqs))}

    def names(self) -> dict[str, list[str]]:
        """At most 200 agents, services and environments each, perhaps seconds old."""
        known, begun = self._names, time.monotonic()
        if known is not None and begun < known[0]:
            return known[1]
        kinds = ("agent", "service", "environment")
        rows = self.read(f"SELECT DISTINCT {', '.join(kinds)} FROM listed WHERE +no > 0 LIMIT 20000")  # noqa: S608
        names = {kind: sorted({row[at] for row in rows} - {""})[:200] for at, kind in enumerate(kinds)}
        ended = time.monotonic()
        self._names = ended + _NAMES_AGE * (ended - begun), names
        return names

    def scored(self) -> list[tuple[str, str]]:
        """Return OpenTelemetry's name and the level of each metric with results."""
        names = "json_extract(attributes, '$[0][1]'), json_extract(attributes, '$[1][1]')"
        return self.read(f"SELECT DISTINCT {names} FROM series WHERE name = 'pandaeval.evaluations'")  # noqa: S608

    def newest(self) -> int:
        """Return the number of the newest result, 0 for none."""
        return int(self.read("SELECT coalesce(max(seq), 0) FROM results")[0][0])

    def change(self) -> str:
        """A text that changes with the lists."""
        newest = ("max(seq) FROM results", "max(no) FROM listed", "max(at) FROM incident_states")
        [row] = self.read(f"SELECT {', '.join(f'(SELECT {each})' for each in newest)}")
        return "-".join(str(each or 0) for each in row)


def _numbered(rows: Sequence[tuple[int, Any]], limit: int) -> Page:
    return Page([item for _, item in rows[:limit]], (0.0, rows[limit - 1][0]) if len(rows) > limit else None)
