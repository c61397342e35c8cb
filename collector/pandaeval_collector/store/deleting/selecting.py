"""Traces by selector: user, session, trace, or before a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import orjson
import zstandard

from pandaeval_collector.base.session_ids import own_ids, sent_id
from pandaeval_collector.store import numbers
from pandaeval_collector.store.chunks import CHUNK, chunk_content
from pandaeval_collector.store.deleting.about import About

KEYS = {"user": (b"user.id",), "session": (b"session.id", b"conversation.id")}
"""Ends of the attributes that name a user or a session."""
_MARKED = 100
"""Chunks of undecided traces read at a time."""
_SESSION = "(SELECT no FROM sessions WHERE session_id = ?1)"
_OF_USER = "SELECT session FROM listed WHERE no > 0 AND session > 0 AND user = ?1"
_DECIDED = {
    "session": (
        f"""SELECT no FROM members WHERE session = {_SESSION}
            UNION SELECT no FROM listed WHERE no > 0 AND session > 0 AND session = {_SESSION}""",  # noqa: S608
    ),
    # First the traces without a user: they are found through the user's traces in the same session.
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


def decided(connection: sqlite3.Connection, kind: str, value: str, limit: int = -1) -> About:
    """Return selected decided traces; at most ``limit``, all if negative."""
    about = About(connection, _numbers(connection, kind, value, limit))
    if kind == "session":
        about.add_session(connection, value)
    return about


def undecided(connection: sqlite3.Connection, kind: str, value: str, after: int) -> tuple[set[bytes], int, bool]:
    """Return undecided traces from chunks after an id, the last id, and whether more follow."""
    rows = connection.execute(
        f"SELECT {CHUNK} FROM chunks WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (after, _MARKED),
    ).fetchall()
    known = numbers.of_traces(connection, {row[3] for row in rows})
    others = _other_services(connection, value) if kind == "session" else frozenset()
    found = {row[3] for row in rows if row[3] not in known and _names(row, kind, sent_id(value), others)}
    return found, max((row[2] for row in rows), default=after), len(rows) == _MARKED


def _numbers(connection: sqlite3.Connection, kind: str, value: str, limit: int) -> list[int]:
    if kind == "trace":
        return [*numbers.of_traces(connection, [bytes.fromhex(value)]).values()]
    found: dict[int, None] = {}
    for query in _DECIDED[kind]:
        found |= dict.fromkeys(no for (no,) in connection.execute(f"{query} LIMIT ?2", (value, limit)))
        if found and limit > 0:
            break
    return [*found]


def _other_services(connection: sqlite3.Connection, session_id: str) -> frozenset[str]:
    sent = sent_id(session_id)
    query = "SELECT session_id, services FROM sessions WHERE session_id = ? OR (session_id >= ? AND session_id < ?)"
    rows = connection.execute(query, (sent, *own_ids(sent)))
    return frozenset(
        each for id_, services in rows if id_ != session_id and services for each in orjson.loads(services)
    )


def _names(row: Sequence[Any], kind: str, value: str, others: Collection[str]) -> bool:
    """Return whether a selector matches the chunk. ``others``: services of other sessions, whose chunks never match."""
    if kind == "trace":
        return bool(row[3].hex() == value)
    if kind == "before":
        return bool(row[5] < int(value) * 1_000_000)
    try:
        content = chunk_content(row)
    except zstandard.ZstdError:
        content = b""
    if any(b"service.name" + _encoded(service) in content for service in others):
        return False
    return (kind == "session" and row[6] == value) or any(key + _encoded(value) in content for key in KEYS[kind])


def _encoded(value: str) -> bytes:
    text = value.encode(errors="surrogatepass")
    inner = b"\x0a" + _varint(len(text)) + text
    return b"\x12" + _varint(len(inner)) + inner


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
