"""What people say of incidents: it changes no score."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Literal

from pandaeval_collector.store.table import StoreTable, written

State = Literal["new", "known", "resolved", "muted"]
STATES: tuple[State, ...] = ("new", "known", "resolved", "muted")
"""From what asks for most attention to what asks for least."""
Standing = Literal["open", "new", "known", "resolved", "muted", "all"]
"""Which incidents are asked for; ``open``: new or known."""
SETTLED = frozenset({"resolved", "muted"})
"""States that ask for no attention."""
_MOST = 10_000
"""Most states kept. Those that were given longest ago make room."""


@dataclass(frozen=True, slots=True)
class Triage:
    """What people say of an incident: ``new`` (nothing, or it came back after it was resolved), ``known``, ``resolved``
    or ``muted``. ``by``: who; ``at``: when, Unix milliseconds, ``None`` where nobody said anything."""

    state: State = "new"
    note: str = ""
    by: str = ""
    at: int | None = None

    def now(self, last_at: int) -> Triage:
        """Return it for an incident whose last run began at ``last_at`` (Unix milliseconds): one that comes back after
        it was resolved is new again."""
        return replace(self, state="new") if self.state == "resolved" and last_at > (self.at or 0) else self


class TriageTable(StoreTable):
    """The states of incidents in one store."""

    @written
    def mark(self, connection: sqlite3.Connection, ids: Collection[str], triage: Triage) -> None:
        """Give these incidents a state, ``new`` included: the note stays then, too."""
        connection.executemany(
            "INSERT OR REPLACE INTO incident_states VALUES (?, ?, ?, ?, ?)", [(id_, *astuple(triage)) for id_ in ids]
        )
        connection.execute(
            "DELETE FROM incident_states WHERE id IN "
            "(SELECT id FROM incident_states ORDER BY at DESC, id LIMIT -1 OFFSET ?)",
            (_MOST,),
        )


def triages(connection: sqlite3.Connection) -> Mapping[str, Triage]:
    """Return what was said last of each incident, by its id."""
    return {id_: Triage(*row) for id_, *row in connection.execute("SELECT * FROM incident_states")}
