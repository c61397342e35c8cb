"""Deletes the data of a user, a session, a trace or of old days, in bounded steps, and keeps it deleted.

The first transaction stores the selector. Each step continues from there, so a start after a kill completes the
deletion. Hashes of the deleted IDs stay until the retention ends: late spans, and decisions that were under way, do
not bring the data back.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import zstandard

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.store import numbers
from pandaeval_collector.store.chunks import CHUNK, chunk_content, keep_newest
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.failures import group_id
from pandaeval_collector.store.outbox import batch_items, outbox_batches
from pandaeval_collector.store.responses import BLOCK_BITS
from pandaeval_collector.store.table import StoreTable, written
from pandaeval_otel.assembly import Decided

if TYPE_CHECKING:
    from pandaeval_collector.store.changes import WriteSet

LOG = "deletions.jsonl"
"""File in the data directory with a line for each deletion, without content."""
PURGE = "purge"
"""The last stage: all rows are deleted, and the write-ahead log has to be emptied."""
_STAGES = ("rows", "mark", "chunks", "outbox", "rest")
_PENDING, _GONE = "deletion:", "gone:"
"""How keys of the table ``meta`` begin: deletions that are not complete, and hashes of deleted IDs."""
_TRACES, _MARKED, _CHUNKS, _BATCHES = 100, 100, 5000, 20
"""Rows of one step, by stage."""
_TRIES, _PAUSE_S = 50, 0.1
"""How often a busy write-ahead log is emptied again, and the pause before."""
_TOMBSTONE = Decided(1, frozenset(), (), 0, final=True)
_ID = re.compile(rb"(?s)(?=[\x0a\x4a]\x10(.{16}))")
"""Trace IDs of an encoded span, log record or member: a field of 16 bytes."""
_HEX = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_TEXT = rb"\x12[\x80-\xff]*[\x00-\x7f]\x0a([\x80-\xff]*[\x00-\x7f])"
"""The bytes between the key of an attribute and its text; the group is the length of the text."""
_KEYS = {"user": (b"user.id",), "session": (b"session.id", b"conversation.id")}
"""Ends of the attributes that name a user or a session."""
_NOS, _ABOUT, _UNITS = (f"(SELECT value FROM json_each(:{name}))" for name in ("nos", "about", "units"))  # noqa: S608
_UNIT = f"substr(unit, 1, 32) IN {_UNITS} OR unit IN {_UNITS}"
_ROWS = (
    ("span_batches", "kept", f"no IN {_NOS}"),
    ("span_batches", "chunks", "id IN (SELECT value FROM json_each(:chunks))"),
    ("results", "results", f"about IN {_ABOUT}"),
    ("results", "run_results", f"about IN {_ABOUT}"),
    ("judge_jobs", "jobs", f"trace IN {_NOS}"),
    ("labels", "people_labels", _UNIT),
    ("", "judged", f"{_UNIT} OR session IN {_UNITS}"),
    ("", "label_draws", _UNIT),
    ("", "run_items", f"run IN (SELECT no FROM runs) AND no IN {_NOS}"),  # noqa: S608
    ("", "responses", f"block IN (SELECT value >> {BLOCK_BITS} FROM json_each(:nos)) AND no IN {_NOS}"),  # noqa: S608
    ("", "listed_attributes", f"no IN {_NOS}"),
    ("", "listed", f"no IN {_ABOUT}"),
    ("", "members", f"no IN {_NOS}"),
    ("traces", "traces", f"no IN {_NOS}"),
)
"""Rows about traces and their sessions: the name under which they are counted, the table, and the condition."""
_SESSION = "(SELECT no FROM sessions WHERE session_id = ?1)"
_OF_USER = "SELECT session FROM listed WHERE no > 0 AND session > 0 AND user = ?1"
_CHOSEN = {
    "session": (
        f"""SELECT no FROM members WHERE session = {_SESSION}
            UNION SELECT no FROM listed WHERE no > 0 AND session > 0 AND session = {_SESSION}""",  # noqa: S608
    ),
    # First the traces without a user in the user's sessions: those with the user lead to them.
    "user": (
        f"SELECT no FROM listed WHERE no > 0 AND user = '' AND session IN ({_OF_USER})",  # noqa: S608
        "SELECT no FROM listed WHERE no > 0 AND user = ?1",
    ),
    "before": (
        "SELECT no FROM listed WHERE no > 0 AND at < CAST(?1 AS INTEGER)",
        """SELECT no FROM traces WHERE decided_at < CAST(?1 AS INTEGER) / 1000.0
           AND NOT EXISTS (SELECT 1 FROM listed WHERE listed.no = traces.no)""",
    ),
}
"""Queries of the numbers of decided traces, by the kind of the selector."""
Counts = Counter[str]


class Deletions(StoreTable):
    """The deletions of one store. In the process that writes the store, ``gone`` holds the hashes of deleted IDs."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.gone: set[str] = set()

    def load(self) -> None:
        """Reads the hashes of deleted IDs."""
        self.gone.update(key.removeprefix(_GONE) for (key,) in self._rows(_keys("key"), _GONE, _after(_GONE)))

    def pending(self) -> bool:
        """Returns whether a deletion is not complete."""
        return bool(self._rows(_keys("key"), _PENDING, _after(_PENDING)))

    @written
    def begin(self, connection: sqlite3.Connection, kind: str, value: str, by: str) -> None:
        """Stores a deletion, for :meth:`step` to make."""
        record = {"kind": kind, "value": value, "by": by, "stage": _STAGES[0], "at": 0, "counts": {}}
        if kind == "trace":
            self._bury(connection, [value])
        _write(connection, f"{_PENDING}{time.time_ns()}", record)

    @written
    def step(self, connection: sqlite3.Connection) -> str:
        """Makes a bounded part of the oldest deletion. Returns the stage that follows, ``""`` if nothing is left."""
        row = connection.execute(f"{_keys('key, value')} LIMIT 1", (_PENDING, _after(_PENDING))).fetchone()
        if row is None:
            return ""
        failpoints.reach("in_deletion")
        key, record = row[0], orjson.loads(row[1])
        if (stage := record["stage"]) == PURGE:
            return PURGE
        counts: Counts = Counter(record["counts"])
        work: dict[str, Callable[[sqlite3.Connection, dict[str, Any], Counts], bool]] = {
            "rows": self._rows_step,
            "mark": self._mark_step,
            "chunks": self._chunks_step,
            "outbox": self._outbox_step,
            "rest": self._rest_step,
        }
        has_more = work[stage](connection, record, counts)
        record["counts"] = dict(counts)
        if not has_more:
            record |= {"stage": (*_STAGES, PURGE)[_STAGES.index(stage) + 1], "at": 0}
        if record["stage"] == PURGE:
            _note(connection, record)
            record = {"stage": PURGE}
        _write(connection, key, record)
        return str(record["stage"])

    @written
    def purged(self, connection: sqlite3.Connection) -> None:
        """Ends the deletions whose write-ahead log was emptied."""
        rows = connection.execute(_keys("key, value"), (_PENDING, _after(_PENDING))).fetchall()
        done = [(key,) for key, value in rows if orjson.loads(value)["stage"] == PURGE]
        connection.executemany("DELETE FROM meta WHERE key = ?", done)

    # -- what stays deleted --------------------------------------------------------------------------------------

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        """Returns tombstones of the deleted ones of these traces."""
        return {id_: _TOMBSTONE for id_ in trace_ids if _hash(id_.hex()) in self.gone} if self.gone else {}

    def spared(self, connection: sqlite3.Connection, changes: WriteSet) -> WriteSet:
        """Returns the changes of a decision without deleted traces and sessions."""
        if not self.gone:
            return changes
        rows = [row for each in fields(changes) for row in getattr(changes, each.name) if hasattr(row, "trace_id")]
        units = {row.unit for row in changes.results} | {row.unit for row in changes.judged}
        ids = {row.trace_id.hex() for row in rows} | {numbers.trace_of(unit) for unit in units}
        dead = {id_ for id_ in ids if id_ and _hash(id_) in self.gone}
        named = {*changes.touched, *changes.closed, *changes.elsewhere, *changes.endings, *units}
        named -= {row.session_id for row in changes.session_traces if row.trace_id.hex() not in dead}
        over = {id_ for id_ in named if _hash(id_) in self.gone}
        over -= numbers.of_sessions(connection, over).keys()
        runs = [replace(run, results=_there(connection, run)) for run in changes.runs]
        # A group that began with a deleted failure, or may begin with one.
        bare = [row for row in changes.failures if dead or _hash(row.id) in self.gone]
        blank = [replace(row, title=row.label, description="", text="", cause="") for row in bare]
        failures = [*(row for row in changes.failures if row not in bare), *blank]
        changes = replace(changes, runs=runs, failures=failures)
        return _without(connection, changes, dead, over) if dead or over else changes

    # -- the stages ----------------------------------------------------------------------------------------------

    def _bury(self, connection: sqlite3.Connection, ids: Iterable[str]) -> None:
        hashes = {_hash(id_) for id_ in ids}
        now = str(self._clock.calendar())
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(_GONE + each, now) for each in hashes])
        self.gone |= hashes

    def _rows_step(self, connection: sqlite3.Connection, record: dict[str, Any], counts: Counts) -> bool:
        nos = chosen(connection, record["kind"], record["value"], _TRACES)
        about = _About(connection, nos)
        if record["kind"] == "session":
            about.add_session(connection, record["value"])
        if about.since is not None:
            record["since"] = min(about.since, record.get("since", about.since))
        self._bury(connection, (*about.traces, *about.sessions.values()))
        if record["kind"] == "trace" and about.sessions:
            record["session"] = _hash(next(iter(about.sessions.values())))
        counts["incidents"] += self._forget_failures(connection, about)
        keep_newest(connection)
        for name, table, condition in _ROWS:
            counts[name] += connection.execute(f"DELETE FROM {table} WHERE {condition}", about.values()).rowcount  # noqa: S608
        for no, session_id in about.sessions.items():
            gone = "DELETE FROM sessions WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM members WHERE session = ?1)"
            counts["sessions"] += connection.execute(gone, (no,)).rowcount
            connection.execute(
                "DELETE FROM endings WHERE session_id = ?1 AND ?1 NOT IN (SELECT session_id FROM sessions)",
                (session_id,),
            )
        del counts[""]
        return bool(nos)

    def _forget_failures(self, connection: sqlite3.Connection, about: _About) -> int:
        """Takes the failures of deleted results out of their incidents. Removes the example of an incident that began
        with one of them."""
        rows = connection.execute(
            f"""SELECT id, json_extract(CAST(body AS TEXT), '$.metadata.failure_group.id') AS grp FROM results
                WHERE about IN {_ABOUT} AND success = 0 AND grp IS NOT NULL""",  # noqa: S608
            about.values(),
        ).fetchall()
        began = {group for id_, group in rows if group_id(id_) == group}
        self._bury(connection, began)
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

    def _mark_step(self, connection: sqlite3.Connection, record: dict[str, Any], counts: Counts) -> bool:
        found, record["at"], has_more = _unfinished(connection, record["kind"], record["value"], record["at"])
        new = {id_.hex() for id_ in found if _hash(id_.hex()) not in self.gone}
        counts["traces"] += len(new)
        self._bury(connection, new)
        return has_more

    def _chunks_step(self, connection: sqlite3.Connection, record: dict[str, Any], counts: Counts) -> bool:
        query = "SELECT id, trace_id FROM chunks WHERE id > ? ORDER BY id LIMIT ?"
        rows = connection.execute(query, (record["at"], _CHUNKS)).fetchall()
        gone = [(id_,) for id_, trace_id in rows if _hash(trace_id.hex()) in self.gone]
        connection.executemany("DELETE FROM chunks WHERE id = ?", gone)
        counts["span_batches"] += len(gone)
        record["at"] = max((id_ for id_, _ in rows), default=0)
        return len(rows) == _CHUNKS

    def _outbox_step(self, connection: sqlite3.Connection, record: dict[str, Any], counts: Counts) -> bool:
        rows = _outbox_rows(connection, record["at"])
        for row in rows:
            counts["queued_exports"] += self._scrub(connection, row, record.get("session", ""))
        record["at"] = max((row[0] for row in rows), default=0)
        return len(rows) == _BATCHES

    def _scrub(self, connection: sqlite3.Connection, row: Sequence[Any], session: str) -> int:
        """Removes the items about deleted traces from a row of the outbox. The other items keep their numbers."""
        last, signal, created_at, items, packed = row
        numbered = [*enumerate(_items(items, packed), last - items + 1)]
        goes = [_concerns(item, self.gone, session) for _, item in numbered]
        if not any(goes):
            return 0
        connection.execute("DELETE FROM outbox WHERE seq = ?", (last,))
        for is_gone, run in groupby(zip(numbered, goes, strict=True), lambda pair: pair[1]):
            kept = [each for each, _ in run]
            if is_gone:
                continue
            at = kept[0][0] - 1
            for batch in outbox_batches(signal, [item for _, item in kept]):
                at += batch.items
                values = (at, signal, created_at, batch.packed, len(batch.packed), batch.items)
                connection.execute(
                    "INSERT INTO outbox (seq, signal, created_at, body, size, items) VALUES (?, ?, ?, ?, ?, ?)", values
                )
        return sum(goes)

    def _rest_step(self, connection: sqlite3.Connection, record: dict[str, Any], counts: Counts) -> bool:
        """Deletes the attributes that no trace has any more, the judge's saved answers since the first deleted trace,
        and deleted traces that stand for others in series."""
        connection.execute(
            "DELETE FROM attribute_pairs WHERE NOT EXISTS (SELECT 1 FROM listed_attributes WHERE pair = id)"
        )
        query = "DELETE FROM verdicts WHERE created_at >= ?"
        counts["saved_answers"] += connection.execute(query, (record.get("since", float("inf")),)).rowcount
        for key, text in connection.execute("SELECT key, exemplars FROM series WHERE exemplars != '{}'").fetchall():
            found = orjson.loads(text)
            left = {at: each for at, each in found.items() if _hash(str(each[1])) not in self.gone}
            if left != found:
                connection.execute("UPDATE series SET exemplars = ? WHERE key = ?", (orjson.dumps(left).decode(), key))
        return False


class _About:
    """Traces by number, with the sessions that they belong to."""

    def __init__(self, connection: sqlite3.Connection, nos: Sequence[int]) -> None:
        self._nos = nos
        rows = [
            *numbers.each_of(
                connection, "SELECT trace_id, chunks, decided_at, no FROM traces WHERE no IN ({marks})", nos
            )
        ]
        self.traces = [trace_id.hex() for trace_id, *_ in rows]
        self._chunks = [id_ for _, chunks, *_ in rows for id_ in orjson.loads(chunks)]
        self.since = min((decided_at for *_, decided_at, _ in rows), default=None)
        self.sessions: dict[int, str] = {}
        for table in ("members", "listed"):
            query = f"""SELECT session, session_id FROM {table} JOIN sessions ON sessions.no = session
                        WHERE {table}.no IN ({{marks}})"""  # noqa: S608
            self.sessions.update(numbers.each_of(connection, query, nos))

    def add_session(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Adds a session that may have no trace any more."""
        self.sessions.update({no: id_ for id_, no in numbers.of_sessions(connection, [session_id]).items()})

    def values(self) -> dict[str, str]:
        """Returns the values of the conditions in ``_ROWS``."""
        about = [*self._nos, *(-no for no in self.sessions)]
        units = orjson.dumps([*self.traces, *self.sessions.values()]).decode()
        json = numbers.json_list
        return {"nos": json(self._nos), "about": json(about), "chunks": json(self._chunks), "units": units}


def chosen(connection: sqlite3.Connection, kind: str, value: str, limit: int = -1) -> list[int]:
    """Returns the numbers of decided traces that a selector names."""
    if kind == "trace":
        return [*numbers.of_traces(connection, [bytes.fromhex(value)]).values()]
    found: dict[int, None] = {}
    for query in _CHOSEN[kind]:
        found |= dict.fromkeys(no for (no,) in connection.execute(f"{query} LIMIT ?2", (value, limit)))
        if found and limit > 0:
            break
    return [*found]


def preview(connection: sqlite3.Connection, kind: str, value: str) -> Counts:
    """Counts the stored rows that a deletion would delete."""
    counts: Counts = Counter()
    about = _About(connection, chosen(connection, kind, value))
    if kind == "session":
        about.add_session(connection, value)
    for name, table, condition in _ROWS:
        query = f"SELECT count(*) FROM {table} WHERE {condition}"  # noqa: S608
        counts[name] += connection.execute(query, about.values()).fetchone()[0] if name else 0
    del counts[""]
    gone = {_hash(id_) for id_ in (*about.traces, *about.sessions.values())}
    at, has_more, open_ = 0, True, set[bytes]()
    while has_more:
        found, at, has_more = _unfinished(connection, kind, value, at)
        open_ |= found
    counts["traces"] += len(open_)
    gone.update(_hash(id_.hex()) for id_ in open_)
    at = 0
    while rows := _outbox_rows(connection, at):
        counts["queued_exports"] += sum(_concerns(item, gone, "") for row in rows for item in _items(row[3], row[4]))
        at = rows[-1][0]
    return counts


def sinks(connection: sqlite3.Connection) -> list[str]:
    """Returns the names of exporters that have sent results, and ``kafka topic`` if spans came from Kafka."""
    names = [key.removeprefix("cursor:") for (key,) in connection.execute(_keys("key"), ("cursor:", _after("cursor:")))]
    (from_log,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM log_partitions) OR EXISTS (SELECT 1 FROM member_log_partitions)"
    ).fetchone()
    return [*names, *(["kafka topics"] if from_log else [])]


def complete(deletions: Deletions, folder: Path, is_over: Callable[[], bool]) -> bool:
    """Makes all steps of stored deletions, with a pause as long as each. Blocks. Returns ``False`` if ``is_over``, or
    if a reader keeps the write-ahead log from being emptied."""
    while not is_over():
        began = time.monotonic()
        if not deletions.pending():
            return True
        if deletions.step().result() == PURGE:
            if not _empty_log(folder / FILE_NAME):
                return False
            deletions.purged().result()
        time.sleep(time.monotonic() - began)
    return False


def _empty_log(file: Path) -> bool:
    with closing(connect(file, "full")) as connection:
        for _ in range(_TRIES):
            if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return True
            time.sleep(_PAUSE_S)
    return False


def forget(connection: sqlite3.Connection, before: float) -> None:
    """Deletes the hashes of IDs that were deleted before a time of the store's calendar."""
    connection.execute(
        "DELETE FROM meta WHERE key >= ? AND key < ? AND CAST(value AS REAL) < ?", (_GONE, _after(_GONE), before)
    )


def _keys(columns: str) -> str:
    return f"SELECT {columns} FROM meta WHERE key >= ? AND key < ? ORDER BY key"  # noqa: S608


def _after(prefix: str) -> str:
    """Returns the first text behind all that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _hash(id_: str) -> str:
    return hashlib.blake2b(id_.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _write(connection: sqlite3.Connection, key: str, record: dict[str, Any]) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, orjson.dumps(record).decode()))


def _note(connection: sqlite3.Connection, record: dict[str, Any]) -> None:
    """Appends a line without content to the log of deletions."""
    (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": record["by"],
        "selector": record["kind"],
        "hash": _hash(record["value"]),
        "deleted": {name: number for name, number in sorted(record["counts"].items()) if number},
    }
    handle = os.open(Path(file).with_name(LOG), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(handle, orjson.dumps(line) + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


def _unfinished(connection: sqlite3.Connection, kind: str, value: str, after: int) -> tuple[set[bytes], int, bool]:
    """Returns undecided traces that a selector names, from the chunks behind an ID; the last ID; and whether more
    chunks follow."""
    rows = connection.execute(
        f"SELECT {CHUNK} FROM chunks WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (after, _MARKED),
    ).fetchall()
    decided = numbers.of_traces(connection, {row[3] for row in rows})
    found = {row[3] for row in rows if row[3] not in decided and _names(row, kind, value)}
    return found, max((row[2] for row in rows), default=after), len(rows) == _MARKED


def _names(row: Sequence[Any], kind: str, value: str) -> bool:
    """Returns whether a chunk names the user, session or trace, or began before the time."""
    if kind == "trace":
        return bool(row[3].hex() == value)
    if kind == "before":
        return bool(row[5] < int(value) * 1_000_000)
    if kind == "session" and row[6] == value:
        return True
    try:
        content = chunk_content(row)
    except zstandard.ZstdError:
        return False
    text = value.encode(errors="surrogatepass")
    inner = b"\x0a" + _varint(len(text)) + text
    return any(key + b"\x12" + _varint(len(inner)) + inner in content for key in _KEYS[kind])


def _varint(number: int) -> bytes:
    """Encodes a number as protobuf does."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _outbox_rows(connection: sqlite3.Connection, after: int) -> list[Any]:
    query = "SELECT seq, signal, created_at, items, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?"
    return connection.execute(query, (after, _BATCHES)).fetchall()


def _items(items: int, packed: bytes) -> list[bytes]:
    """Returns the items of a row of the outbox, empty ones if it was damaged: no exporter can read it either."""
    try:
        return batch_items(items, packed)
    except (zstandard.ZstdError, struct.error):
        return [b""] * items


def _concerns(item: bytes, gone: set[str], session: str) -> bool:
    """Returns whether an encoded item is about a deleted trace, or about the session with this hash."""
    ids = chain((found[1].hex() for found in _ID.finditer(item)), (found[0].decode() for found in _HEX.finditer(item)))
    return any(_hash(id_) in gone for id_ in ids) or bool(session and session in map(_hash, _sessions(item)))


def _sessions(item: bytes) -> Iterator[str]:
    """Yields the values of attributes that name a session."""
    for key in _KEYS["session"]:
        for found in re.finditer(re.escape(key) + _TEXT, item):
            size = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(found[1]))
            yield item[found.end() : found.end() + size].decode(errors="replace")


def _there(connection: sqlite3.Connection, run: Any) -> list[Any]:
    """Returns the results of a batch whose trace or session is stored."""
    about = {each.about for each in run.results}
    there = set[int]()
    for table, sign in (("traces", 1), ("sessions", -1)):
        query = f"SELECT no FROM {table} WHERE no IN ({{marks}})"  # noqa: S608
        there |= {sign * no for (no,) in numbers.each_of(connection, query, {sign * no for no in about})}
    return [each for each in run.results if each.about in there]


def _without(connection: sqlite3.Connection, changes: WriteSet, dead: set[str], over: set[str]) -> WriteSet:
    """Returns changes without these traces and sessions, and deletes the chunks of the traces."""

    def stays(row: Any) -> bool:
        unit = getattr(row, "unit", "")
        trace_id = row.trace_id.hex() if hasattr(row, "trace_id") else numbers.trace_of(unit)
        return trace_id not in dead and unit not in over

    ids = [(id_,) for row in changes.traces if not stays(row) for id_ in row.chunks]
    connection.executemany("DELETE FROM chunks WHERE id = ?", ids)
    hashes = {_hash(id_) for id_ in dead}
    kept: dict[str, Any] = {
        name: [row for row in getattr(changes, name) if stays(row)]
        for name in ("traces", "results", "judged", "session_traces", "responses", "jobs", "listed")
    }
    for name in ("touched", "closed", "elsewhere"):
        kept[name] = getattr(changes, name) - over
    kept["endings"] = [id_ for id_ in changes.endings if id_ not in over]
    kept["moved"] = [id_ for id_ in changes.moved if id_.hex() not in dead]
    for name in ("strangers", "contents"):
        kept[name] = {id_: each for id_, each in getattr(changes, name).items() if id_.hex() not in dead}
    kept["outbox"] = [
        batch
        for each in changes.outbox
        for batch in outbox_batches(
            each.signal, [item for item in _items(each.items, each.packed) if not _concerns(item, hashes, "")]
        )
    ]
    return replace(changes, **kept)
