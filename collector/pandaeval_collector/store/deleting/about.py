"""All rows about traces and their sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from pandaeval_collector.store import numbers
from pandaeval_collector.store.responses import BLOCK_BITS

_NOS, ABOUT, _UNITS = (f"(SELECT value FROM json_each(:{name}))" for name in ("nos", "about", "units"))  # noqa: S608
_UNIT = f"substr(unit, 1, 32) IN {_UNITS} OR unit IN {_UNITS}"
ROWS = (
    ("span_batches", "kept", f"no IN {_NOS}"),
    ("span_batches", "chunks", "id IN (SELECT value FROM json_each(:chunks))"),
    ("results", "results", f"about IN {ABOUT}"),
    ("results", "run_results", f"about IN {ABOUT}"),
    ("judge_jobs", "jobs", f"trace IN {_NOS}"),
    ("labels", "people_labels", _UNIT),
    ("", "judged", f"{_UNIT} OR session IN {_UNITS}"),
    ("", "label_draws", _UNIT),
    ("", "run_items", f"run IN (SELECT no FROM runs) AND no IN {_NOS}"),  # noqa: S608
    ("", "responses", f"block IN (SELECT value >> {BLOCK_BITS} FROM json_each(:nos)) AND no IN {_NOS}"),  # noqa: S608
    ("", "listed_attributes", f"no IN {_NOS}"),
    ("", "listed", f"no IN {ABOUT}"),
    ("", "members", f"no IN {_NOS}"),
    ("traces", "traces", f"no IN {_NOS}"),
)
"""Name in the counts, table, and condition on :meth:`About.values`."""


class About:
    def __init__(self, connection: sqlite3.Connection, nos: Sequence[int]) -> None:
        query = "SELECT trace_id, chunks, decided_at FROM traces WHERE no IN ({marks})"
        rows = [*numbers.each_of(connection, query, nos)]
        self.nos = nos
        self.traces = [trace_id.hex() for trace_id, _, _ in rows]
        self._chunks = [id_ for _, chunks, _ in rows for id_ in orjson.loads(chunks)]
        self.since = min((decided_at for _, _, decided_at in rows), default=None)
        self.sessions: dict[int, str] = {}
        for table in ("members", "listed"):
            query = f"""SELECT session, session_id FROM {table} JOIN sessions ON sessions.no = session
                        WHERE {table}.no IN ({{marks}})"""  # noqa: S608
            self.sessions.update(numbers.each_of(connection, query, nos))

    def add_session(self, connection: sqlite3.Connection, session_id: str) -> None:
        self.sessions.update({no: id_ for id_, no in numbers.of_sessions(connection, [session_id]).items()})

    def ids(self) -> list[str]:
        return [*self.traces, *self.sessions.values()]

    def values(self) -> dict[str, str]:
        json = numbers.json_list
        about = [*self.nos, *(-no for no in self.sessions)]
        units = orjson.dumps(self.ids()).decode()
        return {"nos": json(self.nos), "about": json(about), "chunks": json(self._chunks), "units": units}
