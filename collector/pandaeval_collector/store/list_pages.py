"""Pages of the table ``listed``: the rows that are wanted, worst first or newest first, and where a page ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from pandaeval_collector.store.found import COLUMNS, Position
from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_collector.store.wanted import Wanted, chosen_by_index, conditions

_MANY = 5_000
"""So many wanted rows are many: among 100,000 a page of them is found before 5,000 rows are put in order."""


def worst_first(
    reader: sqlite3.Connection, wanted: Wanted, where: list[str], values: list[Any], after: Position | None, limit: int
) -> list[Any]:
    """The first ``limit`` rows after the position ``after`` that fulfil the conditions ``where`` with ``values``, which
    are those of ``wanted`` and more: what failed, by its index, and then what did not, where the page reaches so
    far."""
    rows: list[Any] = []
    if after is not None:
        where, values = [*where, "(badness, no) > (?, ?)"], [*values, *after]
    if after is None or after[0] < NOT_FAILED:
        failed = [*where, f"badness < {NOT_FAILED:g}"]
        rows = _chosen(reader, wanted, failed, values, _way(reader, wanted), limit)
    if len(rows) < limit:
        way = "INDEXED BY listed_by_time" if chosen_by_index(wanted) else ""
        rows += _chosen(reader, wanted, [*where, f"badness >= {NOT_FAILED:g}"], values, way, limit - len(rows))
    return rows


def _chosen(
    reader: sqlite3.Connection, wanted: Wanted, where: list[str], values: list[Any], way: str, limit: int
) -> list[Any]:
    """So many of the worst rows: chosen by their numbers first, so that only these are read."""
    # What is searched for has to be read of every row: as they lie, not in the order of the list.
    order = "+badness, +no" if wanted.text is not None else "badness, no"
    return reader.execute(
        f"""SELECT {COLUMNS}, at FROM listed WHERE no IN (
                SELECT no FROM listed AS l {way} WHERE {" AND ".join(where)} ORDER BY {order} LIMIT ?)
            ORDER BY badness, no""",  # noqa: S608
        (*values, limit),
    ).fetchall()


def newest_first(
    reader: sqlite3.Connection, wanted: Wanted, where: list[str], values: list[Any], after: Position | None, limit: int
) -> list[Any]:
    """Finds rows as :func:`worst_first` does, newest first."""
    if after is not None:
        where, values = [*where, "(at, no) < (?, ?)"], [*values, *after]
    order = "+at DESC, +no DESC" if wanted.text is not None else "at DESC, no DESC"
    return reader.execute(
        f"""SELECT {COLUMNS}, at FROM listed WHERE no IN (
                SELECT no FROM listed AS l WHERE {" AND ".join(where)} ORDER BY {order} LIMIT ?)
            ORDER BY at DESC, no DESC""",  # noqa: S608
        (*values, limit),
    ).fetchall()


def _way(reader: sqlite3.Connection, wanted: Wanted) -> str:
    """By which index the worst of those that failed and are wanted are found soonest: in the order of the list, until a
    page is full, where many are wanted; else all of them, to be put in order."""
    if not chosen_by_index(wanted):
        return ""
    where, values = conditions(wanted)
    few = f"SELECT 1 FROM listed AS l INDEXED BY listed_by_time WHERE {' AND '.join(where)} LIMIT {_MANY}"  # noqa: S608
    (found,) = reader.execute(f"SELECT count(*) FROM ({few})", values).fetchone()  # noqa: S608
    return f"INDEXED BY {'listed_failures' if found >= _MANY else 'listed_by_time'}"


def end(rows: Sequence[Sequence[Any]], limit: int, key: str) -> Position | None:
    """Where the next page begins: after the last of ``limit`` rows, which are ordered by ``key`` (``badness`` or
    ``at``); ``None`` where there are no more."""
    if len(rows) <= limit:
        return None
    no, _, badness, *_, at = rows[limit - 1]
    return (badness if key == "badness" else at), no
