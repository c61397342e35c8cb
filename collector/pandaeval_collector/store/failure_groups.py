"""Failures grouped by root cause, counted with their results."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from types import MappingProxyType

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store.failures import plain
from pandaeval_collector.store.table import StoreTable
from pandaeval_collector.store.triage import Triage, triages

MOST_GROUPS = 2000
"""Maximum groups kept. Groups without a failure for the longest time are dropped."""
GAUGE, RETURNED = "pandaeval.failure_groups", "pandaeval.failure_groups.returned"
MOST_GAUGES = 200
"""Maximum groups with their own series: the groups with the newest failures."""
_FRESH_S = 5.0


@dataclass(frozen=True, slots=True)
class FailureGroupRow:
    """A group, or a failure's addition to it.

    ``text``: of the first failure. Times: Unix seconds. ``tool``, ``cause``: or empty.
    """

    id: str
    metric: str
    label: str
    title: str
    description: str
    severity: str
    agent: str
    service: str
    text: str
    count: int
    first_at: float
    last_at: float
    tool: str = ""
    cause: str = ""


_FIELDS = tuple(FailureGroupRow.__dataclass_fields__)


def add(connection: sqlite3.Connection, rows: Sequence[FailureGroupRow]) -> None:
    connection.executemany(
        f"""INSERT INTO failure_groups ({", ".join(_FIELDS)}) VALUES ({", ".join("?" * len(_FIELDS))})
            ON CONFLICT (id) DO UPDATE SET count = count + excluded.count,
                first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)""",  # noqa: S608
        [astuple(row) for row in rows],
    )
    if rows:
        connection.execute(
            "DELETE FROM failure_groups WHERE id IN (SELECT id FROM failure_groups ORDER BY last_at DESC, id LIMIT -1 "
            "OFFSET ?)",
            (MOST_GROUPS,),
        )


def groups(connection: sqlite3.Connection) -> list[FailureGroupRow]:
    query = f"SELECT {', '.join(_FIELDS)} FROM failure_groups ORDER BY last_at DESC, id"  # noqa: S608
    return [FailureGroupRow(*row) for row in connection.execute(query)]


class GroupGauges(StoreTable):
    _read_at = float("-inf")
    _values: Mapping[tuple[str, Attributes], float] = MappingProxyType({})

    def values(self) -> Mapping[tuple[str, Attributes], float]:
        """Return gauges by name and attributes; the last values if the store cannot be read. Merges groups with the
        same cause, as the page does, under the group with the newest failure."""
        if time.monotonic() - self._read_at >= _FRESH_S:
            try:
                rows, given = groups(self._reader()), triages(self._reader())
            except sqlite3.Error:  # the store counts and logs its own errors
                return self._values
            values: Counter[tuple[str, Attributes]] = Counter()
            causes: dict[tuple[str, ...], tuple[str, str]] = {}
            for row in rows:
                if row.count <= 0:  # all dismissed
                    continue
                cause = row.metric, row.label, plain(row.text)
                if len(causes) < MOST_GAUGES:
                    causes.setdefault(cause, (row.id, row.label))
                group, label = causes.get(cause, ("__other__", ""))
                named = (("group", group), ("label", label), ("severity", row.severity))
                about = tuple((f"pandaeval.failure.{key}", name) for key, name in named if name)
                values[GAUGE, about] += row.count
                if given.get(row.id, Triage()).now([int(row.last_at * 1000)]).back_at is not None:
                    values[RETURNED, about] = 1
            self._values = {key: float(count) for key, count in values.items()}
            self._read_at = time.monotonic()
        return self._values
