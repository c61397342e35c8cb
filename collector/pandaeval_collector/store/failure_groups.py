"""The table of failure groups: failures with one root cause, over restarts, counted in the transaction that stores the
failures."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

MOST_GROUPS = 2000
"""Most groups kept. Those without a failure for longest make room."""
_KEPT_EXAMPLES = 20
_COLUMNS = (
    "id, metric, label, title, description, severity, agent, service, text, count, first_at, last_at, examples, "
    "tool, cause"
)


@dataclass(frozen=True, slots=True)
class FailureGroupRow:
    """A group, or what one failure adds to it. ``text``: of the group's first failure, which others are compared with;
    ``count``: failures, or how many are added; times in Unix seconds; ``examples``: the newest last, plain JSON;
    ``tool``, ``cause``: what code knows of the cause, empty for nothing."""

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
    examples: tuple[dict[str, Any], ...] = ()
    tool: str = ""
    cause: str = ""


def add(connection: sqlite3.Connection, rows: Sequence[FailureGroupRow]) -> None:
    """Adds failures to their groups, and creates a group with its first failure."""
    merged: dict[str, FailureGroupRow] = {}
    for row in rows:  # a batch of runs often fails for one cause
        if first := merged.get(row.id):
            examples = (*first.examples, *row.examples)[-_KEPT_EXAMPLES:]
            last_at = max(first.last_at, row.last_at)
            row = replace(first, count=first.count + row.count, last_at=last_at, examples=examples)
        merged[row.id] = row
    for row in merged.values():
        held = connection.execute("SELECT examples FROM failure_groups WHERE id = ?", (row.id,)).fetchone()
        known = [] if held is None else orjson.loads(held[0])
        seen = {each["result"] for each in row.examples}
        shown = [*(each for each in known if each["result"] not in seen), *row.examples][-_KEPT_EXAMPLES:]
        connection.execute(
            f"""INSERT INTO failure_groups ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET count = count + excluded.count, examples = excluded.examples,
                    last_at = max(last_at, excluded.last_at)""",  # noqa: S608
            (
                *(row.id, row.metric, row.label, row.title, row.description, row.severity, row.agent, row.service),
                *(row.text, row.count, row.first_at, row.last_at, orjson.dumps(shown), row.tool, row.cause),
            ),
        )
    if rows:
        connection.execute(
            "DELETE FROM failure_groups WHERE id IN (SELECT id FROM failure_groups ORDER BY last_at DESC, id LIMIT -1 "
            "OFFSET ?)",
            (MOST_GROUPS,),
        )


def groups(connection: sqlite3.Connection, limit: int = MOST_GROUPS) -> list[FailureGroupRow]:
    """Returns the groups, the one with the newest failure first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM failure_groups ORDER BY last_at DESC, id LIMIT ?",  # noqa: S608
        (limit,),
    )
    return [
        replace(FailureGroupRow(*facts), examples=tuple(orjson.loads(examples)), tool=tool, cause=cause)
        for *facts, examples, tool, cause in rows
    ]
