"""The list of traces and sessions, sorted by badness, with attributes. Numbers of sessions are negative."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import Dismissal, ListedRow, ResultRow
from pandaeval_collector.store.table import insert

NO_SCORE = 2.0
"""Replaces a missing signal; sorts last."""
NOT_FAILED = 10.0
"""Added to the signal of units without failure, so they sort after failed units."""
BODY = "CAST(r.body AS TEXT)"
_OF_SESSION = "{t}.session = coalesce((SELECT no FROM sessions WHERE session_id = ?), -1) AND {t}.session > 0"
_LEAST = "json_extract(CAST({t}.facts AS TEXT), '$.FACT') >= ?"
_OF_ANY = """CASE WHEN {t}.no > 0 THEN {of_trace} ELSE EXISTS (
    SELECT 1 FROM listed AS m WHERE m.session = {t}.session AND m.session > 0 AND m.no > 0 AND {of_member}) END"""
"""The condition that a trace, or any trace of a session, matches all filters."""
_OWN = "EXISTS (SELECT 1 FROM results AS r WHERE r.about = {t}.no AND {results} AND r.verdict IS NOT NULL)"
OF_NAMED = """m.session = -r.about AND lower(hex(m.trace_id)) = coalesce(
    json_extract(CAST(r.body AS TEXT), '$.metadata.blame.trace_id'),
    json_extract(CAST(r.body AS TEXT), '$.trace_id'))"""
"""The condition that a session's result names its member ``m``."""
_BLAMED = f"""{{t}}.no IN (SELECT m.no FROM results AS r JOIN members AS m ON {OF_NAMED}
    WHERE r.about < 0 AND {{results}} AND r.verdict IS NOT NULL)"""  # noqa: S608
"""The condition that a session result names the trace. A result names its blamed trace, else the last trace."""
HAS_PAIR = """{t}.no IN (SELECT a.no FROM listed_attributes AS a
    WHERE a.pair = (SELECT p.id FROM attribute_pairs AS p WHERE p.pair = ?))"""
"""The condition that a trace has a pair; ``{t}``: the name of the table ``listed`` in the query."""


def badness_of(results: Iterable[tuple[bool | None, float | None]], broken: bool) -> tuple[float, int]:
    """Return a unit's badness and number of failures.

    Badness: worst signal (0..1, or :data:`NO_SCORE`), plus :data:`NOT_FAILED` without failures. ``results``: (success,
    signal). ``broken``: the run failed.
    """
    worst, failures = 0.0 if broken else NO_SCORE, int(broken)
    for success, signal in results:
        failures += success is False
        if signal is not None and signal < worst:
            worst = signal
    worst = round(worst, 2)  # few different values: a commit writes fewer pages of the index
    return worst if failures else NOT_FAILED + worst, failures


def add(
    connection: sqlite3.Connection,
    rows: Sequence[ListedRow],
    of_trace: Mapping[bytes, int],
    of_session: Mapping[bytes, int],
    results: Sequence[tuple[ResultRow, int]],
    first_time: Collection[bytes],
) -> None:
    """Add decided traces to the list, and update listed units that have new results.

    ``of_trace``, ``of_session``: numbers by trace id.
    """
    fresh: dict[int, list[tuple[bool | None, float | None]]] = {}
    for result, about in results:
        fresh.setdefault(about, []).append((result.success, result.signal))
    again = fresh.keys() - {0} - {of_trace[row.trace_id] for row in rows}
    new = []
    for row in rows:
        no = of_trace[row.trace_id]
        known = fresh.get(no, ()) if row.trace_id in first_time else _standing_results(connection, no)
        standing = badness_of(known, row.broken)
        named = row.agent, row.service, row.environment, row.user
        session = of_session.get(row.trace_id, 0)
        new.append((no, session, row.at_ms, *named, row.broken, *standing, row.facts))
    insert(
        connection,
        "listed (no, session, at, agent, service, environment, user, broken, badness, failures, facts)",
        new,
        verb="INSERT OR REPLACE",
    )
    if pairs := sorted({pair for row in rows for pair in row.attributes}):
        insert(connection, "attribute_pairs (pair)", [(pair,) for pair in pairs], verb="INSERT OR IGNORE")
        ids = dict(numbers.each_of(connection, "SELECT pair, id FROM attribute_pairs WHERE pair IN ({marks})", pairs))
        having = sorted((ids[pair], of_trace[row.trace_id]) for row in rows for pair in row.attributes)
        insert(connection, "listed_attributes (pair, no)", having, verb="INSERT OR IGNORE")
    for about in again:
        _file_again(connection, about)


def move(connection: sqlite3.Connection, sessions: Mapping[int, int]) -> None:
    connection.executemany(
        "UPDATE listed SET session = ? WHERE no = ? AND session != ?",
        [(session, no, session) for no, session in sessions.items()],
    )


def note_dismissals(connection: sqlite3.Connection, dismissals: Iterable[Dismissal]) -> None:
    """Mark runs with a dismissed crash as not failed, or as failed after a withdrawal."""
    for each in dismissals:
        if each.label.metric == "trace.response":
            failed = "json_extract(CAST(facts AS TEXT), '$.error') IS NOT NULL"
            nos = numbers.of_units(connection, [each.label.unit])
            query = f"UPDATE listed SET broken = ? AND {failed} WHERE no = ?"  # noqa: S608
            connection.executemany(query, [(each.undone, no) for no in nos])


def forget_pairs(connection: sqlite3.Connection, limit: int) -> int:
    """Delete up to ``limit`` pairs of deleted traces, which are older than all others; return their number."""
    (first,) = connection.execute("SELECT coalesce(min(no), 1 << 60) FROM traces").fetchone()
    old = connection.execute(
        """SELECT id FROM attribute_pairs
           WHERE coalesce((SELECT min(no) FROM listed_attributes WHERE pair = id), 0) < ? LIMIT ?""",
        (first, limit),
    ).fetchall()
    gone = 0
    for (pair,) in old:
        gone += connection.execute(
            """DELETE FROM listed_attributes WHERE pair = ?1 AND no IN
               (SELECT no FROM listed_attributes WHERE pair = ?1 AND no < ?2 ORDER BY no LIMIT ?3)""",
            (pair, first, max(0, limit - gone)),
        ).rowcount
    connection.executemany(
        "DELETE FROM attribute_pairs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM listed_attributes WHERE pair = id)", old
    )
    return gone


def _file_again(connection: sqlite3.Connection, about: int) -> None:
    results = _standing_results(connection, about)
    if about < 0 and _is_empty(connection, -about):
        connection.execute("DELETE FROM listed WHERE no = ?", (about,))
        return
    if about < 0:
        connection.execute(
            """INSERT INTO listed (no, session, at, badness, failures)
               SELECT ?1, ?2,
                      coalesce((SELECT max(at) FROM listed WHERE session = ?2 AND session > 0 AND no > 0), 0), ?3, ?4
               ON CONFLICT (no) DO UPDATE SET at = excluded.at, badness = excluded.badness, failures = excluded.failures
            """,
            (about, -about, *badness_of(results, False)),
        )
        return
    row = connection.execute("SELECT broken FROM listed WHERE no = ?", (about,)).fetchone()
    if row is not None:
        standing = badness_of(results, bool(row[0]))
        connection.execute("UPDATE listed SET badness = ?, failures = ? WHERE no = ?", (*standing, about))


def _is_empty(connection: sqlite3.Connection, session: int) -> bool:
    """Return whether all traces of a session moved to another session."""
    has = connection.execute("SELECT EXISTS (SELECT 1 FROM members WHERE session = ?)", (session,)).fetchone()
    return not has[0]


def _standing_results(connection: sqlite3.Connection, about: int) -> list[tuple[bool | None, float | None]]:
    rows = connection.execute("SELECT success, signal FROM results WHERE about = ? AND verdict IS NOT NULL", (about,))
    return [(None if success is None else bool(success), signal) for success, signal in rows]


# Filters as conditions of a query.


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter for traces and sessions.

    Times: Unix milliseconds, ``until_ms`` exclusive. ``status``: ``error`` or ``ok``. ``metric``, ``outcome``,
    ``label``, ``success``, ``incident`` (group ids): a result matches.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    agent: str | None = None
    service: str | None = None
    environment: str | None = None
    user: str | None = None
    session: str | None = None
    failed: bool | None = None
    status: str | None = None
    metric: str | None = None
    outcome: str | None = None
    label: str | None = None
    success: bool | None = None
    incident: str | None = None
    text: str | None = None
    min_seconds: float | None = None
    min_usd: float | None = None
    attribute: tuple[str, ...] = ()
    """Pairs ``key=value`` that a trace must have, all of them."""

    def of_unit(self) -> Wanted:
        return replace(self, metric=None, outcome=None, label=None, success=None, incident=None)


def chosen_by_index(wanted: Wanted) -> bool:
    """Return whether there are filters, and the time index is enough for all of them."""
    other_filters = replace(wanted, failed=None)
    read_from = ("text", "session", "attribute", "status", "min_seconds", "min_usd")
    return (
        other_filters != Wanted()
        and other_filters == other_filters.of_unit()
        and not any(getattr(other_filters, name) for name in read_from)
    )


class Conditions(NamedTuple):
    conditions: list[str]
    values: list[Any]

    def __str__(self) -> str:
        return " AND ".join(self.conditions) or "1"

    def also(self, condition: str, *values: Any) -> Conditions:
        return Conditions([*self.conditions, condition], [*self.values, *values])


def conditions(wanted: Wanted, table: str = "l") -> Conditions:
    """Return conditions on ``listed``. Sessions match by any trace; traces also by session results that name them."""
    where = _given((condition.format(t=table), value) for condition, value in _demands(wanted))
    own, of_member = carried(wanted, table), carried(wanted, "m")
    if own.conditions:
        where = where.also(_OF_ANY.format(t=table, of_trace=own, of_member=of_member), *own.values * 2)
    results = result_conditions(wanted)
    if not results.conditions:
        return where
    has, blamed = (each.format(t=table, results=results) for each in (_OWN, _BLAMED))
    if wanted.success is False:  # avoids reading the results of other units
        has = f"({table}.badness < {NOT_FAILED:g} AND {has})"
    if wanted.metric is not None and not wanted.metric.startswith("session."):
        return where.also(has, *results.values)
    return where.also(f"({has} OR {blamed})", *results.values * 2)


def carried(wanted: Wanted, table: str) -> Conditions:
    """Return the conditions that a trace, or any trace of a session, must meet."""
    return _given((condition.format(t=table), value) for condition, value in _carried(wanted))


def result_conditions(wanted: Wanted) -> Conditions:
    """Return the conditions on the table ``results r``."""
    return _given(
        [
            ("r.metric = ?", wanted.metric),
            ("r.success = ?", wanted.success),
            ("json_extract(CAST(r.body AS TEXT), '$.outcome') = ?", wanted.outcome),
            ("json_extract(CAST(r.body AS TEXT), '$.label') = ?", wanted.label),
            ("instr(?, json_extract(CAST(r.body AS TEXT), '$.metadata.failure_group.id'))", wanted.incident),
        ]
    )


def _given(demands: Iterable[tuple[str, Any]]) -> Conditions:
    given = [demand for demand in demands if demand[1] is not None]
    return Conditions([condition for condition, _ in given], [value for _, value in given])


def _demands(wanted: Wanted) -> Iterator[tuple[str, Any]]:
    yield "{t}.at >= ?", wanted.since_ms
    yield "{t}.at < ?", wanted.until_ms
    yield _OF_SESSION, wanted.session
    if wanted.failed is not None:
        yield "{t}.badness < ?" if wanted.failed else "{t}.badness >= ?", NOT_FAILED


def _carried(wanted: Wanted) -> Iterator[tuple[str, Any]]:
    for name in ("agent", "service", "environment", "user"):
        yield f"{{t}}.{name} = ?", getattr(wanted, name)
    for pair in wanted.attribute:
        yield HAS_PAIR, pair
    if wanted.status is not None:
        yield "{t}.broken = ?", wanted.status == "error"
    if wanted.text is not None:
        text = orjson.dumps(wanted.text)[1:-1].decode()  # as facts are written
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        yield "CAST({t}.facts AS TEXT) LIKE ? ESCAPE '\\'", f"%{escaped}%"
    if wanted.min_seconds is not None:
        yield _LEAST.replace("FACT", "us"), wanted.min_seconds * 1e6
    yield _LEAST.replace("FACT", "usd"), wanted.min_usd
