"""Human states of incidents, which change no score."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Literal

from pandaeval_collector.store.table import StoreTable, written

State = Literal["new", "known", "resolved", "muted"]
STATES: tuple[State, ...] = ("new", "known", "resolved", "muted")
"""States from most to least urgent."""
Standing = Literal["open", "new", "known", "resolved", "muted", "all"]
"""Filter of incidents by state; ``open``: new or known."""
SETTLED = frozenset({"resolved", "muted"})
"""States that need no attention."""
POSTED = "cursor:webhook"
"""Key of the posted events of incidents in the table ``meta``."""
_MOST = 10_000
"""Maximum states kept. The oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Triage:
    """The state of an incident: ``new``, ``known``, ``resolved`` or ``muted``.

    ``at``, ``back_at`` (return after resolution): Unix milliseconds.
    """

    state: State = "new"
    note: str = ""
    by: str = ""
    at: int | None = None
    back_at: int | None = None

    def now(self, times: Iterable[int]) -> Triage:
        """Return the state after runs at ``times`` (Unix milliseconds). A resolved incident that returns is new."""
        later = [at for at in times if at > (self.at or 0)]
        return replace(self, state="new", back_at=min(later)) if self.state == "resolved" and later else self


class TriageTable(StoreTable):
    @written
    def mark(self, connection: sqlite3.Connection, ids: Collection[str], triage: Triage) -> None:
        """Set the state of these incidents. ``new`` keeps the note."""
        connection.executemany(
            "INSERT OR REPLACE INTO incident_states (id, state, note, person, at) VALUES (?, ?, ?, ?, ?)",
            [(id_, *astuple(triage)[:-1]) for id_ in ids],
        )
        connection.execute(
            "DELETE FROM incident_states WHERE (id, at) IN "
            "(SELECT id, at FROM incident_states ORDER BY at DESC, id LIMIT -1 OFFSET ?)",
            (_MOST,),
        )

    @written
    def keep_posted(self, connection: sqlite3.Connection, notes: str) -> None:
        """Store the posted events as JSON, by id of the incident."""
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (POSTED, notes))


def triages(connection: sqlite3.Connection) -> Mapping[str, Triage]:
    query = "SELECT id, state, note, person, max(at) FROM incident_states GROUP BY id"
    return {id_: Triage(*row) for id_, *row in connection.execute(query)}


def history(connection: sqlite3.Connection, ids: Collection[str]) -> list[Triage]:
    marks = ",".join("?" * len(ids))
    query = f"SELECT DISTINCT state, note, person, at FROM incident_states WHERE id IN ({marks}) ORDER BY at DESC"  # noqa: S608
    return [Triage(*row) for row in connection.execute(query, (*ids,))]
