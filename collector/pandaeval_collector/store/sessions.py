"""The tables of sessions: their traces, and whether they are scored for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future

from pandaeval_collector.store import numbers
from pandaeval_collector.store.access import TableGroup
from pandaeval_collector.store.checksums import FACTS, MEMBER, checked_members
from pandaeval_collector.store.rows import SessionTraceRow


class SessionTables(TableGroup):
    """Sessions by their ids. Decisions insert them; :meth:`endings` come with spans."""

    def session_traces(self, session_id: str) -> list[SessionTraceRow]:
        """Returns what the decided traces of a session left behind, in session order."""
        return [*self._members(session_id, MEMBER)]

    def session_facts(self, session_id: str) -> Iterator[SessionTraceRow]:
        """Yields the same without answers, one at a time: answers are most of the bytes of a large session."""
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
        """Returns how many traces each session has, and what the ``newest`` of them left behind, in any order: in one
        query, for half the price."""
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

    def session_trace(self, trace_id: bytes) -> SessionTraceRow | None:
        """Returns what one decided trace left behind for its session."""
        return self.left_behind([trace_id]).get(trace_id)

    def left_behind(self, trace_ids: Collection[bytes]) -> dict[bytes, SessionTraceRow]:
        """Returns what decided traces left behind for their sessions, or for one that they may come into."""
        reader = self._reader()
        found: dict[bytes, SessionTraceRow] = {}
        for marks, group in numbers.batched(numbers.of_traces(reader, trace_ids).values()):
            rows = reader.execute(
                f"""SELECT coalesce(session_id, ''), {MEMBER}
                    FROM members LEFT JOIN sessions ON sessions.no = session WHERE members.no IN ({marks})""",  # noqa: S608
                group,
            )
            found.update((row.trace_id, row) for row in checked_members(rows))
        return found

    def session_of(self, trace_ids: Collection[bytes]) -> dict[bytes, str]:
        """Returns the session that each trace is filed under."""
        reader = self._reader()
        found: dict[bytes, str] = {}
        for marks, group in numbers.batched(numbers.of_traces(reader, trace_ids).values()):
            found.update(
                reader.execute(
                    f"""SELECT trace_id, session_id FROM members JOIN sessions ON sessions.no = session
                        WHERE members.no IN ({marks})""",  # noqa: S608
                    group,
                )
            )
        return found

    def open_sessions(self) -> Iterator[str]:
        """Yields the ids of sessions that were not scored for good yet."""
        yield from (row[0] for row in self._reader().execute("SELECT session_id FROM sessions WHERE open = 1"))

    def uncompared(self) -> list[str]:
        """Returns the open sessions with a trace that another collector decided and that was not compared yet."""
        rows = self._reader().execute(
            """SELECT session_id FROM sessions WHERE open = 1 AND EXISTS (SELECT 1 FROM members
               WHERE session = sessions.no AND instr(CAST(body AS TEXT), '"loop_evidence":""'))"""
        )
        return [row[0] for row in rows]

    def endings(self) -> list[str]:
        """Sessions that an application ended and that are not scored for good yet."""
        return [row[0] for row in self._reader().execute("SELECT session_id FROM endings ORDER BY session_id")]

    def forget_endings(self, session_ids: Sequence[str]) -> Future[None]:
        """Deletes the endings of sessions that are scored for good."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM endings WHERE session_id = ?", [(id_,) for id_ in session_ids])

        return self._writer.submit(work)

    def session_is_open(self, session_id: str) -> bool | None:
        """Whether a session waits to be scored for good; ``None`` for one that is not known."""
        row = self._reader().execute("SELECT open FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
        return None if row is None else bool(row[0])
