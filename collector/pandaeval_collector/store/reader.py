"""Reads the store's file from any process."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import orjson
import zstandard

from pandaeval_collector.base.session_ids import own_ids
from pandaeval_collector.store import numbers, people
from pandaeval_collector.store.chunks import CHUNK, Part, chunk_content, chunk_contents, contents
from pandaeval_collector.store.connection import Connections, used_bytes
from pandaeval_collector.store.failure_groups import FailureGroupRow, groups
from pandaeval_collector.store.outbox import READ_BYTES, DamagedError
from pandaeval_collector.store.responses import Responses
from pandaeval_collector.store.rows import (
    FACTS,
    MEMBER,
    Chunk,
    ResultRow,
    SessionTraceRow,
    checked_members,
    checksum_of,
)
from pandaeval_collector.store.runs import RunTable
from pandaeval_collector.store.seen import Seen
from pandaeval_collector.store.series_table import SeriesTable
from pandaeval_collector.store.table import StoreTable
from pandaeval_otel.assembly import Decided

_log = logging.getLogger(__name__)
PAUSED = "judge.paused"
"""Key of the list of paused models."""
_RESULT = ", ".join(ResultRow.__dataclass_fields__)


class StoreReader(StoreTable):
    """Reads a data directory, with a connection per thread."""

    def __init__(self, path: Path, responses: Seen | None = None) -> None:
        """``responses``: filter of stored digests; ``None``: query the disk."""
        self.path = path
        self._connections = Connections(path)
        super().__init__(self._connections.own)
        self.connection, self.scan = self._connections.own, self._connections.scan
        self.snapshot, self.close = self._connections.snapshot, self._connections.close
        self.responses = Responses(self._reader)
        self.responses.seen = responses
        self.runs = RunTable(self._reader)
        self.tally = SeriesTable(self._reader)

    def used_bytes(self) -> int:
        return used_bytes(self._reader())

    def get(self, key: str) -> str | None:
        row = self._row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else str(row[0])

    def chunks(self, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
        """Read ``(is_logs, data)`` by chunk id. Raises ``LookupError`` if a chunk is missing."""
        return chunk_contents(self._reader(), ids)

    def open_chunks(self) -> Iterator[Chunk]:
        """Yield chunks of undecided traces in order. Damaged chunks have no data."""
        with self.scan() as reader:
            undecided = reader.execute(
                f"""WITH held AS MATERIALIZED (
                       SELECT value FROM traces, json_each(CAST(traces.chunks AS TEXT)) WHERE traces.size > 0)
                   SELECT {CHUNK} FROM chunks WHERE id NOT IN held ORDER BY id"""  # noqa: S608
            )
            for row in undecided:
                logs, _, id_, trace_id, items, start_ns, session, closes, *_ = row
                try:
                    content = chunk_content(row)
                except zstandard.ZstdError as error:  # a start must not fail over it
                    _log.error("spans of trace %s are damaged and cannot be read any more (%s)", trace_id.hex(), error)
                    content = b""
                yield Chunk(id_, trace_id, bool(logs), items, start_ns, content, session, bool(closes))

    def contents(self, trace_id: bytes) -> list[Part]:
        return contents(self._reader(), trace_id)

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        reader = self._reader()
        query = f"""SELECT trace_id, revision, final, known, chunks, size FROM traces
                    WHERE revision > 0 AND {numbers.BY_ID}"""  # noqa: S608
        rows = numbers.each_of(reader, query, trace_ids, numbers.blocks(reader))
        return {trace_id: _decided(*row) for trace_id, *row in rows}

    def held(self, trace_id: bytes) -> tuple[str, tuple[int, ...]] | None:
        """Return a decided trace's digest and remaining chunk ids, else ``None``."""
        number = numbers.of_traces(self._reader(), [trace_id]).get(trace_id)
        row = self._row("SELECT digest, chunks FROM traces WHERE no = ?", number)
        return None if row is None else (str(row[0]), tuple(orjson.loads(row[1])))

    def newest_results(self, units: Collection[str]) -> dict[tuple[str, str], ResultRow]:
        reader = self._reader()
        query = f"SELECT {_RESULT} FROM results WHERE about IN ({{marks}}) ORDER BY seq"  # noqa: S608
        rows = [ResultRow(*row) for row in numbers.each_of(reader, query, numbers.of_units(reader, units))]
        return {(row.unit, row.metric): row for row in rows}

    def results_after(self, seq: int, limit: int = 1000) -> list[ResultRow]:
        """Return at most ``limit`` results after a cursor, fewer if large. Raises :class:`DamagedError`."""
        rows = self._reader().execute(
            f"SELECT checksum, {_RESULT} FROM results WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608
            (seq, limit),
        )
        found: list[ResultRow] = []
        size = 0
        for checksum, *row in rows:
            result = ResultRow(*row)
            if checksum != checksum_of(result):
                if not found:
                    raise DamagedError(result.seq, 1)
                break
            found.append(result)
            size += len(result.body)
            if size >= READ_BYTES:
                break
        rows.close()
        return found

    def newest_seq(self) -> int:
        return int(self._row("SELECT coalesce(max(seq), 0) FROM results")[0])

    def dismissed(self) -> frozenset[tuple[str, str]]:
        """Return units and metrics of dismissed findings."""
        return people.dismissed(self._reader())

    def failure_groups(self) -> list[FailureGroupRow]:
        return groups(self._reader())

    def session_traces(self, session_id: str) -> list[SessionTraceRow]:
        return [*self._members(session_id, MEMBER)]

    def session_facts(self, session_id: str) -> Iterator[SessionTraceRow]:
        return self._members(session_id, FACTS)

    def _members(self, session_id: str, columns: str) -> Iterator[SessionTraceRow]:
        rows = self._reader().execute(
            f"""SELECT ?1, {columns} FROM members
                WHERE session = (SELECT no FROM sessions WHERE session_id = ?1)
                ORDER BY start_ns, trace_id""",  # noqa: S608
            (session_id,),
        )
        return checked_members(rows)

    def newest_traces(self, session_ids: Collection[str], newest: int) -> dict[str, tuple[int, list[SessionTraceRow]]]:
        """Return each session's trace count and its ``newest`` members, unordered."""
        reader = self._reader()
        names = {number: session_id for session_id, number in numbers.of_sessions(reader, session_ids).items()}
        rows = reader.execute(
            f"""WITH wanted AS MATERIALIZED (
                   SELECT value AS session, (SELECT count(*) FROM members WHERE session = value) AS size
                   FROM json_each(?))
               SELECT size, wanted.session, {MEMBER} FROM wanted, members
               WHERE no IN (SELECT no FROM members AS near WHERE near.session = wanted.session
                            ORDER BY start_ns DESC, trace_id DESC LIMIT ?)""",  # noqa: S608
            (numbers.json_list(names), newest),
        )
        found: dict[str, tuple[int, list[SessionTraceRow]]] = {session_id: (0, []) for session_id in session_ids}
        for size, number, *row in rows:
            session_id = names[number]
            if not found[session_id][0]:
                found[session_id] = size, []
            found[session_id][1].extend(checked_members([(session_id, *row)]))
        return found

    def left_behind(self, trace_ids: Collection[bytes]) -> dict[bytes, SessionTraceRow]:
        reader = self._reader()
        query = f"""SELECT coalesce(session_id, ''), {MEMBER}
                    FROM members LEFT JOIN sessions ON sessions.no = session WHERE members.no IN ({{marks}})"""  # noqa: S608
        rows = numbers.each_of(reader, query, numbers.of_traces(reader, trace_ids).values())
        return {row.trace_id: row for row in checked_members(rows)}

    def session_of(self, trace_ids: Collection[bytes]) -> dict[bytes, str]:
        reader = self._reader()
        query = """SELECT trace_id, session_id FROM members JOIN sessions ON sessions.no = session
                   WHERE members.no IN ({marks})"""
        return dict(numbers.each_of(reader, query, numbers.of_traces(reader, trace_ids).values()))

    def services_of(self, sent: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the known services of the sessions with these ids. Several sessions can share an id."""
        bounds = orjson.dumps([(id_, *own_ids(id_)) for id_ in sent]).decode()
        query = """SELECT s.session_id, s.services FROM json_each(?) AS w JOIN sessions AS s
                   ON s.session_id = json_extract(w.value, '$[0]') OR (s.session_id >= json_extract(w.value, '$[1]')
                   AND s.session_id < json_extract(w.value, '$[2]'))
                   WHERE s.services != '' """
        return {session_id: tuple(orjson.loads(services)) for session_id, services in self._rows(query, bounds)}

    def sharing(self, sent: str) -> list[str]:
        """Return the sessions of other services with the same session id."""
        query = "SELECT session_id FROM sessions WHERE session_id >= ? AND session_id < ?"
        return [session_id for (session_id,) in self._rows(query, *own_ids(sent))]

    def open_sessions(self) -> Iterator[str]:
        yield from (row[0] for row in self._reader().execute("SELECT session_id FROM sessions WHERE open = 1"))

    def uncompared(self) -> list[str]:
        """Return the open sessions with an uncompared trace of another collector."""
        query = """SELECT session_id FROM sessions WHERE open = 1 AND EXISTS (SELECT 1 FROM members
                   WHERE session = sessions.no AND instr(CAST(body AS TEXT), '"evidence":null'))"""
        return [session_id for (session_id,) in self._rows(query)]

    def endings(self) -> list[str]:
        """Return ended sessions without a final score."""
        return [session_id for (session_id,) in self._rows("SELECT session_id FROM endings ORDER BY session_id")]

    def session_is_open(self, session_id: str) -> bool | None:
        """Return whether a session is open; ``None`` if unknown."""
        row = self._row("SELECT open FROM sessions WHERE session_id = ?", session_id)
        return None if row is None else bool(row[0])


def _decided(revision: int, final: int, packed: bytes, chunks: bytes, size: int) -> Decided:
    ids, at = set(), 0
    while at < len(packed):  # see :func:`pandaeval_collector.store.changes.pack_ids`
        end = at + 1 + packed[at]
        ids.add(packed[at + 1 : end])
        at = end
    return Decided(revision, frozenset(ids), tuple(orjson.loads(chunks)), size, bool(final) or not packed)
