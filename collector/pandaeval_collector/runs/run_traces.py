"""Reads the traces of a run from a store that a collector has open for writing."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from pandaeval_collector.store import numbers
from pandaeval_collector.store.chunks import Part
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.kept import contents

_log = logging.getLogger(__name__)

_BEFORE = 32
"""So many traces of a session before a wanted one are read along: what its answer is compared with, and what a judge is
told of the conversation."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A trace with its session and start. ``wanted``: whether results are kept; others only give context."""

    no: int
    trace_id: bytes
    revision: int
    session: str | None
    start_ns: int
    wanted: bool


class LiveTraces:
    """Reads the collector's store through one read-only connection. One thread."""

    def __init__(self, path: Path) -> None:
        """``path``: the data directory."""
        self._reader = connect(path / FILE_NAME, "off", read_only=True)

    def close(self) -> None:
        self._reader.close()

    def get(self, key: str) -> str | None:
        """Returns a value of the store's ``meta`` table."""
        row = self._reader.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def verdict(self, key: str) -> bytes | None:
        """Returns the stored verdict with this key, ``None`` without one."""
        row = self._reader.execute("SELECT body FROM verdicts WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def verdicts(self, newest: int) -> Iterator[bytes]:
        """Yields the newest stored verdicts, at most ``newest``."""
        query = "SELECT body FROM verdicts ORDER BY created_at DESC LIMIT ?"
        yield from (bytes(row[0]) for row in self._reader.execute(query, (newest,)))

    def parts(self, no: int) -> list[Part]:
        """Returns the stored spans and logs of a trace; empty where they are deleted or damaged."""
        try:
            return contents(self._reader, no)
        except zstandard.ZstdError as error:
            _log.warning("the spans of a trace are damaged and cannot be read any more (%s)", error)
            return []

    def session_names(self, groups: Collection[int]) -> dict[int, str]:
        """Returns the ids of sessions by their numbers."""
        return {
            no: name
            for marks, some in numbers.batched(groups)
            for no, name in self._reader.execute(f"SELECT no, session_id FROM sessions WHERE no IN ({marks})", some)  # noqa: S608
        }

    def placed(self, items: Sequence[tuple[int, int]], sessions: bool) -> list[Placed]:
        """Returns the traces of ``items`` and those that have to be read along, ordered by start. ``sessions``: all
        traces of their sessions are wanted."""
        nos = {no for no, _ in items}
        names = self.session_names({group for _, group in items if group})
        starts = {no: 0 for no, group in items if not group}
        wanted, of_session = set(starts), {}
        for group, name in names.items():
            members = self._reader.execute(
                "SELECT no, start_ns FROM members WHERE session = ? ORDER BY start_ns, trace_id", (group,)
            ).fetchall()
            chosen = range(len(members)) if sessions else _with_before([no for no, _ in members], nos)
            for index in chosen:
                no, start = members[index]
                starts[no], of_session[no] = start, name
                if sessions or no in nos:
                    wanted.add(no)
        missing = {no: group for no, group in items if no not in starts}  # a member that moved meanwhile
        starts |= dict.fromkeys(missing, 0)
        of_session |= {no: names[group] for no, group in missing.items() if group in names}
        wanted |= missing.keys()
        found = [
            Placed(no, trace_id, revision, of_session.get(no), starts[no], no in wanted)
            for no, trace_id, revision in _rows(self._reader, starts)
        ]
        return sorted(found, key=lambda each: (each.start_ns, each.trace_id))


def _with_before(members: Sequence[int], wanted: Collection[int]) -> list[int]:
    """Returns the positions of the wanted traces of a session, and of up to ``_BEFORE`` traces ahead of each."""
    chosen: set[int] = set()
    for index, no in enumerate(members):
        if no in wanted:
            chosen.update(range(max(0, index - _BEFORE), index + 1))
    return sorted(chosen)


def _rows(reader: sqlite3.Connection, nos: Iterable[int]) -> list[tuple[int, bytes, int]]:
    return [
        row
        for marks, some in numbers.batched(nos)
        for row in reader.execute(f"SELECT no, trace_id, revision FROM traces WHERE no IN ({marks})", some)  # noqa: S608
    ]
