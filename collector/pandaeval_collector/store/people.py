"""Human verdicts, comparable judge scores, and draws. Scoring does not read them; judge scores outlive results."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pandaeval_collector.store.rows import Dismissal, DrawnRow, JudgedRow
from pandaeval_collector.store.table import StoreTable, written
from pandaeval_otel.wire.labels import HumanLabel

MOST_LABELS = 100_000
"""Maximum verdicts kept. The oldest are dropped."""
MOST_JUDGED = 100_000
PICKED = 0
"""The probability of a label whose run was selected because of its unclear verdict, not drawn."""
_DISMISSAL = "dismissal"
"""The ``door`` of labels that dismiss a finding."""
_LABEL = "unit, metric, score, passed, annotator, at, comment, probability"
JUDGED = ", ".join((*JudgedRow.__dataclass_fields__, "at"))
Fate = Literal["new", "changed", "known"]
Fates = Counter[Fate]

STANDING = f"""
    (SELECT {JUDGED}, max(no) AS no FROM judged GROUP BY metric, unit)
"""  # noqa: S608
"""The newest judged score of each run and metric, as a table to select from."""


class People(StoreTable):
    @written
    def put(self, connection: sqlite3.Connection, labels: Sequence[HumanLabel], now: float) -> Fates:
        return put(connection, labels, now)

    @written
    def remove(self, connection: sqlite3.Connection, unit: str, metric: str, annotator: str) -> int:
        query = "DELETE FROM people_labels WHERE unit = ? AND metric = ? AND annotator = ? AND door = 'person'"
        return connection.execute(query, (unit, metric, annotator)).rowcount

    @written
    def keep_draws(self, connection: sqlite3.Connection, draws: Sequence[DrawnRow], now: float) -> None:
        keep_draws(connection, draws, now)

    def has_labels(self) -> bool:
        return bool(self._row("SELECT EXISTS (SELECT 1 FROM people_labels)")[0])


def is_known(connection: sqlite3.Connection, label: HumanLabel) -> bool:
    """Return whether the verdict's run was judged, labelled or decided."""
    of_session = label.metric.startswith("session.")
    table, key = ("sessions", "session_id") if of_session else ("traces", "trace_id")
    id_ = label.unit if of_session else bytes.fromhex(label.unit.partition(":")[0])
    found = connection.execute(
        f"""SELECT EXISTS (SELECT 1 FROM judged WHERE unit = ?1) OR EXISTS (SELECT 1 FROM people_labels WHERE unit = ?1)
            OR EXISTS (SELECT 1 FROM {table} WHERE {key} = ?2)""",  # noqa: S608
        (label.unit, id_),
    )
    return bool(found.fetchone()[0])


def put(connection: sqlite3.Connection, labels: Iterable[HumanLabel], now: float) -> Fates:
    """Keep the last verdict per run, metric and annotator.

    Missing or later times become ``now`` (Unix seconds). A repeated verdict counts as known, even with another time.
    Returns numbers of new, changed and known verdicts.
    """
    fates: Fates = Counter()
    for each in labels:
        fates[_put(connection, each, now)] += 1
    connection.execute(
        "DELETE FROM people_labels WHERE no <= (SELECT no FROM people_labels ORDER BY no DESC LIMIT 1 OFFSET ?)",
        (MOST_LABELS,),
    )
    return fates


def _put(connection: sqlite3.Connection, label: HumanLabel, now: float) -> Fate:
    key = label.unit, label.metric, label.annotator
    there = connection.execute(
        """SELECT score, passed, comment, at, probability FROM people_labels
           WHERE unit = ? AND metric = ? AND annotator = ?""",
        key,
    ).fetchone()
    passed, at = None if label.passed is None else int(label.passed), min(label.at or now, now)
    same = there is not None and there[:3] == (label.score, passed, label.comment)
    if same and there[4] == PICKED and label.probability:
        same = False  # the run was also drawn
    if there is not None and (same or at < there[3]):
        return "known"
    connection.execute(
        f"""INSERT INTO people_labels ({_LABEL}, door) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'person')
            ON CONFLICT (unit, metric, annotator) DO UPDATE SET score = excluded.score, passed = excluded.passed,
            comment = excluded.comment, at = excluded.at,
            probability = coalesce(excluded.probability, probability)""",  # noqa: S608
        (*key[:2], label.score, passed, label.annotator, at, label.comment, label.probability),
    )
    return "new" if there is None else "changed"


def dismiss(connection: sqlite3.Connection, dismissals: Iterable[Dismissal], now: float) -> None:
    """Keep or withdraw dismissals. A new dismissal replaces an earlier dismissal of the finding, also by another
    person.
    """
    for each in dismissals:
        unit, metric = each.label.unit, each.label.metric
        query = f"DELETE FROM people_labels WHERE unit = ? AND metric = ? AND door = '{_DISMISSAL}'"  # noqa: S608
        connection.execute(query, (unit, metric))
        if not each.undone:
            put(connection, [each.label], now)
            query = f"UPDATE people_labels SET door = '{_DISMISSAL}' WHERE unit = ? AND metric = ? AND annotator = ?"  # noqa: S608
            connection.execute(query, (unit, metric, each.label.annotator))


def dismissed(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Return units and metrics of dismissed findings."""
    query = f"SELECT unit, metric FROM people_labels WHERE door = '{_DISMISSAL}'"  # noqa: S608
    return frozenset(connection.execute(query))


def labels(connection: sqlite3.Connection) -> Iterator[HumanLabel]:
    """Yield current verdicts with the chance of their draw, in order of arrival."""
    rows = connection.execute(
        """SELECT l.unit, l.metric, score, passed, annotator, l.at, comment,
                  iif(l.probability = 0, 0.0, coalesce(d.probability, l.probability))
            FROM people_labels l LEFT JOIN label_draws d USING (unit, metric) ORDER BY no"""
    )
    for unit, metric, score, passed, annotator, at, comment, chance in rows:
        yield HumanLabel(unit, metric, score, None if passed is None else bool(passed), annotator, at, comment, chance)


def page(
    connection: sqlite3.Connection, units: Sequence[str], metric: str | None, before: int | None, limit: int
) -> list[tuple[int, HumanLabel]]:
    """Return numbered verdicts before a number, newest first. Empty ``units`` means all."""
    where = ["1", *(["no < ?"] if before is not None else []), *(["metric = ?"] if metric is not None else [])]
    values = [each for each in (before, metric) if each is not None]
    if units:
        where.append(f"unit IN ({', '.join('?' * len(units))})")
    rows = connection.execute(
        f"SELECT no, {_LABEL} FROM people_labels WHERE {' AND '.join(where)} ORDER BY no DESC LIMIT ?",  # noqa: S608
        (*values, *units, limit),
    )
    return [
        (no, HumanLabel(unit, name, score, None if passed is None else bool(passed), *rest))
        for no, unit, name, score, passed, *rest in rows
    ]


def judged(
    connection: sqlite3.Connection, metric: str = "", agent: str = "", *, picked: bool = True
) -> list[tuple[JudgedRow, bool]]:
    """Return current scores, and whether their run has a label. ``picked``: count labels of :data:`PICKED` runs."""
    which = "1" if picked else f"l.probability IS NOT {PICKED}"
    rows = connection.execute(
        f"""SELECT s.*, EXISTS (
                SELECT 1 FROM people_labels l WHERE l.unit = s.unit AND l.metric = s.metric AND {which})
            FROM {STANDING} s WHERE ? IN ('', metric) AND ? IN ('', agent)""",  # noqa: S608
        (metric, agent),
    )
    found = []
    for unit, of, session, by, score, passed, *rest, labelled in rows:
        row = JudgedRow(unit, of, session, by, score, None if passed is None else bool(passed), *rest[:4])
        found.append((row, bool(labelled)))
    return found


def keep_draws(connection: sqlite3.Connection, draws: Sequence[DrawnRow], now: float) -> None:
    connection.executemany(
        """INSERT INTO label_draws VALUES (?, ?, ?, ?) ON CONFLICT (unit, metric)
           DO UPDATE SET probability = max(probability, excluded.probability)""",
        [(each.unit, each.metric, each.probability, now) for each in draws],
    )


def forget(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Delete old and excess judge scores, at most ``limit``, and old unlabelled draws. Returns the number of scores."""
    gone = connection.execute(
        """DELETE FROM judged WHERE no IN (SELECT no FROM judged ORDER BY no LIMIT ?)
           AND (at < ? OR no <= (SELECT max(no) FROM judged) - ?)""",
        (limit, before, MOST_JUDGED),
    ).rowcount
    connection.execute(
        """DELETE FROM label_draws WHERE at < ?
           AND NOT EXISTS (SELECT 1 FROM people_labels l WHERE l.unit = label_draws.unit
                           AND l.metric = label_draws.metric)""",
        (before,),
    )
    return gone
