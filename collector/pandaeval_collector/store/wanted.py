"""Which traces, sessions and results somebody asks for, as conditions of a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import orjson

from pandaeval_collector.store.listed import HAS_PAIR, NOT_FAILED


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which traces somebody asks for, and sessions by their traces. Times are Unix milliseconds, ``until_ms`` excluded;
    what is ``None`` or empty excludes nothing. ``status``: ``error`` where the run itself failed, else ``ok``;
    ``metric`` (a key such as ``trace.tool_loop``), ``outcome``, ``label``, ``success``: there is a result like that;
    ``text``: stands in what lists show."""

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
    text: str | None = None
    attribute: tuple[str, ...] = ()
    """Pairs ``key=value`` that a trace must have, all of them."""

    def of_unit(self) -> Wanted:
        """Returns the conditions on the unit itself, without those on its results."""
        return replace(self, metric=None, outcome=None, label=None, success=None)


def chosen_by_index(wanted: Wanted) -> bool:
    """Returns whether rows are chosen at all, and by nothing but columns of the index by time."""
    told = replace(wanted, failed=None)
    return told != Wanted() and replace(told.of_unit(), text=None, session=None, attribute=(), status=None) == told


def conditions(wanted: Wanted, table: str = "l") -> tuple[list[str], list[Any]]:
    """Returns the conditions on rows of ``listed`` as SQL, and their values."""
    where: list[str] = []
    values: list[Any] = []

    def demand(condition: str, value: Any) -> None:
        if value is not None:
            where.append(condition.format(t=table))
            values.append(value)

    demand("{t}.at >= ?", wanted.since_ms)
    demand("{t}.at < ?", wanted.until_ms)
    for name in ("agent", "service", "environment", "user"):
        demand(f"{{t}}.{name} = ?", getattr(wanted, name))
    demand(
        "{t}.session = coalesce((SELECT no FROM sessions WHERE session_id = ?), -1) AND {t}.session > 0", wanted.session
    )
    for pair in wanted.attribute:
        demand(HAS_PAIR, pair)
    if wanted.failed is not None:
        demand("{t}.badness < ?" if wanted.failed else "{t}.badness >= ?", NOT_FAILED)
    demand("{t}.broken = ?", None if wanted.status is None else int(wanted.status == "error"))
    if wanted.text is not None:
        written = orjson.dumps(wanted.text)[1:-1].decode()  # as facts are written
        escaped = written.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        demand("CAST({t}.facts AS TEXT) LIKE ? ESCAPE '\\'", f"%{escaped}%")
    results, more = result_conditions(wanted, "r")
    if wanted.success is False:
        demand("{t}.badness < ?", NOT_FAILED)  # implied, and spares reading the results of all others
    if results:
        newest = "r.seq = (SELECT max(seq) FROM results AS n WHERE n.about = r.about AND n.metric = r.metric)"
        where.append(
            f"EXISTS (SELECT 1 FROM results AS r WHERE r.about = {table}.no AND {' AND '.join([*results, newest])})"  # noqa: S608
        )
        values += more
    return where, values


def result_conditions(wanted: Wanted, table: str) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    if wanted.metric is not None:
        where.append(f"{table}.metric = ?")
        values.append(wanted.metric)
    if wanted.success is not None:
        where.append(f"{table}.success = ?")
        values.append(int(wanted.success))
    for name in ("outcome", "label"):
        if (value := getattr(wanted, name)) is not None:
            where.append(f"json_extract(CAST({table}.body AS TEXT), '$.{name}') = ?")
            values.append(value)
    return where, values
