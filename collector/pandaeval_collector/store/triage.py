"""What people say of incidents: that one is known, resolved or muted, with a note. It changes no score."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

from pandaeval_collector.store.table import StoreTable

State = Literal["new", "known", "resolved", "muted"]
STATES: tuple[State, ...] = ("new", "known", "resolved", "muted")
"""From what asks for most attention to what asks for least."""
SETTLED = frozenset({"resolved", "muted"})
"""States that ask for no attention."""
_MOST = 10_000
"""Most states kept. Those that were given longest ago make room."""


@dataclass(frozen=True, slots=True)
class Triage:
    """What a person said of an incident. ``at``: when, Unix seconds; 0.0 where nobody said anything."""

    state: State = "new"
    note: str = ""
    person: str = ""
    at: float = 0.0

    def now(self, last_at: float) -> State:
        """Returns the state of an incident that was last met at ``last_at`` (Unix seconds): one that comes back after
        it was resolved is new again."""
        return "new" if self.state == "resolved" and last_at > self.at else self.state


class TriageTable(StoreTable):
    """The states of incidents in one store."""

    def mark(self, ids: Collection[str], triage: Triage) -> Future[None]:
        """Gives these incidents a state, ``new`` included: the note stays then, too."""

        def work(connection: sqlite3.Connection) -> None:
            given = triage.state, triage.note, triage.person, triage.at
            connection.executemany(
                "INSERT OR REPLACE INTO incident_states VALUES (?, ?, ?, ?, ?)", [(id_, *given) for id_ in ids]
            )
            connection.execute(
                "DELETE FROM incident_states WHERE id IN "
                "(SELECT id FROM incident_states ORDER BY at DESC, id LIMIT -1 OFFSET ?)",
                (_MOST,),
            )

        return self._writer.submit(work)


def triages(connection: sqlite3.Connection) -> Mapping[str, Triage]:
    """Returns what was said last of each incident, by its id."""
    return {id_: Triage(*row) for id_, *row in connection.execute("SELECT * FROM incident_states")}
