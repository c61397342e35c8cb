"""The stages of a deletion, in bounded steps.

``rows`` deletes decided traces. ``mark`` stores hashes of undecided traces; ``chunks`` deletes their spans. ``outbox``
removes queued exports. ``rest`` deletes data without traces.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import TypedDict

import orjson

from pandaeval_collector.store.chunks import keep_newest
from pandaeval_collector.store.deleting.about import ABOUT, ROWS, About
from pandaeval_collector.store.deleting.hashes import Gone, hashed
from pandaeval_collector.store.deleting.queued import BATCHES, rows_after, scrub
from pandaeval_collector.store.deleting.selecting import decided, undecided
from pandaeval_collector.store.failures import group_id

FIRST, PURGE = "rows", "purge"
"""The first stage, and the last stage. At the last stage, only the write-ahead log is left to be emptied."""
_STAGES = (FIRST, "mark", "chunks", "outbox", "rest", PURGE)
_TRACES, _CHUNKS = 100, 5000
"""Rows of one step."""


class Record(TypedDict, total=False):
    kind: str
    value: str
    by: str
    stage: str
    at: int
    """Start of the next step of the stage."""
    counts: dict[str, int]
    since: float
    """Time of the earliest decision about a deleted trace."""
    session: str
    """Hash of the deleted trace's session."""


Stage = Callable[[sqlite3.Connection, Gone, Record, Counter[str]], bool]
"""Makes a step, updates the record and the counts, and returns whether the stage continues."""


def advance(connection: sqlite3.Connection, gone: Gone, record: Record) -> None:
    stages: dict[str, Stage] = {"rows": _rows, "mark": _mark, "chunks": _chunks, "outbox": _outbox, "rest": _rest}
    counts = Counter(record["counts"])
    has_more = stages[record["stage"]](connection, gone, record, counts)
    record["counts"] = dict(counts)
    if not has_more:
        record["stage"], record["at"] = dict(pairwise(_STAGES))[record["stage"]], 0


def _rows(connection: sqlite3.Connection, gone: Gone, record: Record, counts: Counter[str]) -> bool:
    about = decided(connection, record["kind"], record["value"], _TRACES)
    if about.since is not None:
        record["since"] = min(about.since, record.get("since", about.since))
    if record["kind"] == "trace" and about.sessions:
        record["session"] = hashed(next(iter(about.sessions.values())))
    gone.add(connection, about.ids())
    counts["incidents"] += _forget_failures(connection, gone, about)
    keep_newest(connection)
    for name, table, condition in ROWS:
        deleted = connection.execute(f"DELETE FROM {table} WHERE {condition}", about.values())  # noqa: S608
        counts[name] += deleted.rowcount
    del counts[""]
    counts["sessions"] += _forget_sessions(connection, about)
    return bool(about.nos)


def _forget_failures(connection: sqlite3.Connection, gone: Gone, about: About) -> int:
    rows = connection.execute(
        f"""SELECT id, json_extract(CAST(body AS TEXT), '$.metadata.failure_group.id') AS grp FROM results
            WHERE about IN {ABOUT} AND success = 0 AND grp IS NOT NULL""",  # noqa: S608
        about.values(),
    ).fetchall()
    began = {group for id_, group in rows if group_id(id_) == group}
    gone.add(connection, began)
    connection.executemany(
        "UPDATE failure_groups SET title = label, description = '', text = '', cause = '' WHERE id = ?",
        [(group,) for group in began],
    )
    connection.executemany(
        "UPDATE failure_groups SET count = count - ? WHERE id = ?",
        [(number, group) for group, number in Counter(group for _, group in rows).items()],
    )
    connection.execute("DELETE FROM failure_groups WHERE count <= 0")
    return len(began)


def _forget_sessions(connection: sqlite3.Connection, about: About) -> int:
    query = "DELETE FROM sessions WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM members WHERE session = ?1)"
    number = sum(connection.execute(query, (no,)).rowcount for no in about.sessions)
    connection.executemany(
        "DELETE FROM endings WHERE session_id = ?1 AND ?1 NOT IN (SELECT session_id FROM sessions)",
        [(session_id,) for session_id in about.sessions.values()],
    )
    return number


def _mark(connection: sqlite3.Connection, gone: Gone, record: Record, counts: Counter[str]) -> bool:
    found, record["at"], has_more = undecided(connection, record["kind"], record["value"], record["at"])
    new = {id_.hex() for id_ in found if id_.hex() not in gone}
    counts["traces"] += len(new)
    gone.add(connection, new)
    return has_more


def _chunks(connection: sqlite3.Connection, gone: Gone, record: Record, counts: Counter[str]) -> bool:
    query = "SELECT id, trace_id FROM chunks WHERE id > ? ORDER BY id LIMIT ?"
    rows = connection.execute(query, (record["at"], _CHUNKS)).fetchall()
    deleted = [(id_,) for id_, trace_id in rows if trace_id.hex() in gone]
    connection.executemany("DELETE FROM chunks WHERE id = ?", deleted)
    counts["span_batches"] += len(deleted)
    record["at"] = max((id_ for id_, _ in rows), default=0)
    return len(rows) == _CHUNKS


def _outbox(connection: sqlite3.Connection, gone: Gone, record: Record, counts: Counter[str]) -> bool:
    rows = rows_after(connection, record["at"])
    counts["queued_exports"] += sum(scrub(connection, row, gone, record.get("session", "")) for row in rows)
    record["at"] = max((row[0] for row in rows), default=0)
    return len(rows) == BATCHES


def _rest(connection: sqlite3.Connection, gone: Gone, record: Record, counts: Counter[str]) -> bool:
    """Delete unused attributes, saved judge answers since the first deleted trace, and deleted traces among examples
    of series.
    """
    connection.execute("DELETE FROM attribute_pairs WHERE NOT EXISTS (SELECT 1 FROM listed_attributes WHERE pair = id)")
    query = "DELETE FROM verdicts WHERE created_at >= ?"
    counts["saved_answers"] += connection.execute(query, (record.get("since", float("inf")),)).rowcount
    for key, text in connection.execute("SELECT key, exemplars FROM series WHERE exemplars != '{}'").fetchall():
        found = orjson.loads(text)
        left = {at: each for at, each in found.items() if str(each[1]) not in gone}
        if left != found:
            connection.execute("UPDATE series SET exemplars = ? WHERE key = ?", (orjson.dumps(left).decode(), key))
    return False
