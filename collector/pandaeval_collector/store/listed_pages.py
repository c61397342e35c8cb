"""Pages of the table ``listed`` with results, sessions and names."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pandaeval_collector.store import numbers
from pandaeval_collector.store.listed import NOT_FAILED, Conditions, Wanted, chosen_by_index, conditions

Position = tuple[float, int]
"""The end of a page: the sorting value and the number of its last row."""
COLUMNS = "no, session, badness, failures, facts, environment, at"
"""Columns of the table ``listed`` for :func:`listed_of` and :func:`sessions_of`."""
OF_SESSION = "session = ? AND session > 0 AND no > 0"
"""Traces of a session. The second condition lets SQLite use the index, which contains only traces with a session."""
_OF_VALUE = OF_SESSION.replace("?", "s.value")
_FACTS = "CAST(facts AS TEXT)"
MOST_STATES = 48
"""Maximum traces of a session whose badness a list shows singly."""
_MANY = 5_000
"""With at least this many wanted rows among 100,000, reading in list order is faster than sorting."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An agent's trace in a list.

    ``facts``: from :func:`pandaeval_collector.pipeline.line.listing.shown_facts`. ``results``: by metric key.
    """

    no: int
    session: str | None
    badness: float
    failures: int
    facts: Mapping[str, Any]
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: str = ""

    @property
    def failed(self) -> bool:
        return self.badness < NOT_FAILED

    @property
    def worst(self) -> float:
        """The worst signal, 0..1, or :data:`pandaeval_collector.store.listed.NO_SCORE`."""
        return self.badness if self.failed else self.badness - NOT_FAILED


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session in a list, or a trace without session (``id`` is ``None``).

    ``badness``: of the worst :data:`MOST_STATES`. ``us``, ``tokens``, ``usd``, ``unpriced``: totals.
    """

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
    badness: Sequence[float] = ()
    us: int = 0
    tokens: int = 0
    usd: float | None = None
    question: str | None = None
    unpriced: int = 0


def listed_of(reader: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> list[Listed]:
    results = results_about(reader, [row[0] for row in rows])
    names = _names_of(reader, {row[1] for row in rows} - {0})
    return [
        Listed(no, names.get(session), badness, failures, orjson.loads(facts), results.get(no, {}), where)
        for no, session, badness, failures, facts, where, _ in rows
    ]


def sessions_of(reader: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> list[ListedSession]:
    of_session = f"SELECT {COLUMNS} FROM listed WHERE {OF_SESSION} ORDER BY badness, no LIMIT 1"  # noqa: S608
    worst = [row if row[0] > 0 else reader.execute(of_session, (row[1],)).fetchone() for row in rows]
    listed = iter(listed_of(reader, [row for row in worst if row is not None]))
    shown = [None if row is None else next(listed) for row in worst]
    numbered = [row[1] for row in rows if row[1]]
    names, results = _names_of(reader, numbered), results_about(reader, [-number for number in numbered])
    of_sessions = _traces_of(reader, numbered)
    sessions = []
    for (no, session, badness, *_), trace in zip(rows, shown, strict=True):
        sums = of_sessions[session] if session or trace is None else _sums_of(trace)
        sessions.append(
            ListedSession(
                id=names.get(session),
                no=session or no,
                position=(badness, no),
                failed=badness < NOT_FAILED,
                worst=trace,
                results=results.get(-session, {}),
                **sums,
            )
        )
    return sessions


def _sums_of(trace: Listed) -> dict[str, Any]:
    facts = trace.facts
    at = int(facts.get("at", 0))
    return {
        "traces": 1,
        "failed_traces": int(trace.failed),
        "first_ms": at,
        "last_ms": at,
        "badness": [trace.badness],
        "us": int(facts.get("us", 0)),
        "tokens": int(sum(facts.get("tokens", ()))),
        "usd": facts.get("usd"),
        "unpriced": int("unpriced" in facts),
        "question": facts.get("in"),
    }


def _traces_of(reader: sqlite3.Connection, sessions: Sequence[int]) -> dict[int, dict[str, Any]]:
    (text,) = reader.execute(
        f"""SELECT json_group_array(json_array(
                s.value,
                json((SELECT json_group_array(json_array(no, badness)) FROM (
                      SELECT no, badness FROM listed WHERE {_OF_VALUE}
                      ORDER BY badness, no LIMIT {MOST_STATES}))),
                json((SELECT json_object(
                          'traces', count(*), 'failed_traces', count(*) FILTER (WHERE badness < {NOT_FAILED:g}),
                          'first_ms', coalesce(min(at), 0), 'last_ms', coalesce(max(at), 0),
                          'us', CAST(total(json_extract({_FACTS}, '$.us')) AS INTEGER),
                          'tokens', CAST(total(json_extract({_FACTS}, '$.tokens[0]')
                                               + json_extract({_FACTS}, '$.tokens[1]')) AS INTEGER),
                          'usd', sum(json_extract({_FACTS}, '$.usd')),
                          'unpriced', count(json_extract({_FACTS}, '$.unpriced')),
                          'question', (SELECT json_extract({_FACTS}, '$.in') FROM listed WHERE {_OF_VALUE}
                                       ORDER BY at, no LIMIT 1))
                      FROM listed WHERE {_OF_VALUE}))))
            FROM json_each(?) AS s""",  # noqa: S608
        (numbers.json_list(sessions),),
    ).fetchone()
    return {
        session: {**sums, "badness": [state for _, state in sorted(states)]}
        for session, states, sums in orjson.loads(text)
    }


def results_about(reader: sqlite3.Connection, about: Sequence[int]) -> dict[int, dict[str, Mapping[str, Any]]]:
    """Return the newest results as JSON objects, by subject number and metric key."""
    # All in one row: each row waits for the interpreter lock, which can take milliseconds.
    results: dict[int, dict[str, Mapping[str, Any]]] = {}
    for marks, group in numbers.batched(about):
        columns, bodies = reader.execute(
            f"""SELECT json_group_array(json_array(seq, about, metric, unit)), group_concat(CAST(body AS TEXT), ',')
                FROM results WHERE about IN ({marks})""",  # noqa: S608
            group,
        ).fetchone()
        rows = zip(orjson.loads(columns), orjson.loads(f"[{bodies or ''}]"), strict=True)
        for (_, number, metric, unit), body in sorted(rows, key=lambda row: row[0][0]):
            key = f"{metric} {unit}" if metric.startswith("turn.") else metric  # a trace may have several turns
            results.setdefault(number, {})[key] = body
    return results


def _names_of(reader: sqlite3.Connection, sessions: Collection[int]) -> dict[int, str]:
    return dict(numbers.each_of(reader, "SELECT no, session_id FROM sessions WHERE no IN ({marks})", sessions))


# Pages of wanted rows of the table ``listed``, worst or newest first.


def worst_first(
    reader: sqlite3.Connection, wanted: Wanted, where: Conditions, after: Position | None, limit: int
) -> list[Any]:
    """Read ``limit`` rows after ``after`` that match ``where``, failed rows first."""
    rows: list[Any] = []
    if after is not None:
        where = where.also("(badness, no) > (?, ?)", *after)
    if after is None or after[0] < NOT_FAILED:
        rows = _chosen(reader, wanted, where.also(f"badness < {NOT_FAILED:g}"), limit, _way(reader, wanted))
    if len(rows) < limit:
        way = "INDEXED BY listed_by_time" if chosen_by_index(wanted) else ""
        rows += _chosen(reader, wanted, where.also(f"badness >= {NOT_FAILED:g}"), limit - len(rows), way)
    return rows


def newest_first(
    reader: sqlite3.Connection, wanted: Wanted, where: Conditions, after: Position | None, limit: int
) -> list[Any]:
    if after is not None:
        where = where.also("(at, no) < (?, ?)", *after)
    return _chosen(reader, wanted, where, limit, order="at DESC, no DESC")


def _chosen(
    reader: sqlite3.Connection,
    wanted: Wanted,
    where: Conditions,
    limit: int,
    way: str = "",
    order: str = "badness, no",
) -> list[Any]:
    # A text search reads every row, so it reads the rows in their order on disk.
    chosen_in = order if wanted.text is None else ", ".join(f"+{each}" for each in order.split(", "))
    return reader.execute(
        f"""SELECT {COLUMNS} FROM listed WHERE no IN (
                SELECT no FROM listed AS l {way} WHERE {where} ORDER BY {chosen_in} LIMIT ?)
            ORDER BY {order}""",  # noqa: S608
        (*where.values, limit),
    ).fetchall()


def _way(reader: sqlite3.Connection, wanted: Wanted) -> str:
    """Return the index clause: list order for many matches, else sorting."""
    if not chosen_by_index(wanted):
        return ""
    where = conditions(wanted)
    few = f"SELECT 1 FROM listed AS l INDEXED BY listed_by_time WHERE {where} LIMIT {_MANY}"  # noqa: S608
    (count,) = reader.execute(f"SELECT count(*) FROM ({few})", where.values).fetchone()  # noqa: S608
    return f"INDEXED BY {'listed_failures' if count >= _MANY else 'listed_by_time'}"


def end_of(rows: Sequence[Sequence[Any]], limit: int, key: str) -> Position | None:
    """Return the next page's start after ``limit`` rows, else ``None``. ``key``: ``badness`` or ``at``."""
    if len(rows) <= limit:
        return None
    no, _, badness, *_, at = rows[limit - 1]
    return (badness if key == "badness" else at), no
