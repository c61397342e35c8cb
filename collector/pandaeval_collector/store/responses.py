"""Which traces were decided, and the table of response ids: which decided traces gave a response of a model, and which
continue it. It finds conversations whose spans name no session."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from threading import Lock

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import MEMBER, SessionTraceRow, checked_members
from pandaeval_collector.store.table import StoreTable

# Remembers in memory which traces were decided: the intake asks for every new trace, so the answer must not need the
# disk.
_log = logging.getLogger(__name__)

_BITS = 26
_MASK = (1 << _BITS) - 1


class Seen:
    """A Bloom filter of ids in 8 MiB: it never says no to an id that was added, and rarely yes to another one (0.1 % at
    a million ids, 2 % at five million). Until ``complete`` is set it says yes to all. Safe from any thread."""

    def __init__(self) -> None:
        self.complete, self._closing = False, False
        self._bits = bytearray(b"\0" * (1 << (_BITS - 3)))  # written, so that memory does not seem to grow for an hour
        self._adding = Lock()

    def add(self, ids: Iterable[bytes]) -> None:
        bits = self._bits
        with self._adding:
            for id_ in ids:
                hashed = hash(id_)  # 64 bits, keyed anew in each process: senders cannot aim at a place
                one, two = hashed & _MASK, hashed >> 32 & _MASK
                bits[one >> 3] |= 1 << (one & 7)
                bits[two >> 3] |= 1 << (two & 7)

    def __contains__(self, id_: bytes) -> bool:
        if not self.complete:
            return True
        hashed = hash(id_)
        one, two = hashed & _MASK, hashed >> 32 & _MASK
        return bool(self._bits[one >> 3] >> (one & 7) & 1 and self._bits[two >> 3] >> (two & 7) & 1)

    def remember(self, scan: Callable[[], AbstractContextManager[sqlite3.Connection]], ids: str) -> None:
        """Adds the ids of a store's earlier processes, on a thread: two seconds for a million. ``ids``: the query that
        selects them."""
        self._filling = threading.Thread(target=self._fill, args=(scan, ids), name="pandaeval-seen", daemon=True)
        self._filling.start()

    def stop(self) -> None:
        """Waits until the thread of :meth:`remember` has stopped reading."""
        self._closing = True
        self._filling.join()

    def _fill(self, scan: Callable[[], AbstractContextManager[sqlite3.Connection]], ids: str) -> None:
        try:
            with scan() as reader:
                rows = reader.execute(ids)
                while (some := rows.fetchmany(1000)) and not self._closing:
                    self.add(id_ for (id_,) in some)
        except sqlite3.Error as error:  # then every new id is looked up on disk: slower, and as right
            _log.warning("the ids of decided traces could not be read (%s)", error)
            return
        self.complete = not self._closing


BLOCK_BITS = 15
"""Rows lie in blocks of so many trace numbers, each in order of digests: new ones go to a few pages at the end, and a
response is looked for once per block."""
MANY = 64
"""Most traces that are read for one response, given or continued, the first decided ones: one id for all must not
make each trace dearer than the one before."""


class Responses(StoreTable):
    """Digests of response ids. A filter in memory answers for most of them that no other trace has them, if there is
    one."""

    seen: Seen | None = None

    def traces(self, response_ids: Collection[str], *, continued: bool) -> list[SessionTraceRow]:
        """Returns what the decided traces left behind that gave one of these responses, or those that go on from one
        (``continued``); perhaps a few others too."""
        digests = [digest for digest in map(response_digest, response_ids) if self.seen is None or digest in self.seen]
        if not digests:
            return []
        reader = self._reader()
        blocks = numbers.blocks(reader, bits=BLOCK_BITS)

        def read(some: Sequence[object]) -> list[SessionTraceRow]:
            rows = reader.execute(
                f"""SELECT coalesce(session_id, ''), {MEMBER}
                    FROM responses JOIN members USING (no) LEFT JOIN sessions ON sessions.no = session
                    WHERE block IN (SELECT value FROM json_each(?)) AND continued = ?
                    AND digest IN ({",".join("?" * len(some))}) LIMIT ?""",  # noqa: S608
                (blocks, continued, *some, MANY * len(some)),
            )
            return [*checked_members(rows)]

        found: list[SessionTraceRow] = []
        for _, group in numbers.batched(digests):
            rows = read(group)
            if len(rows) == MANY * len(group):  # one digest may have left no room for the others
                rows = [row for each in group for row in read([each])]
            found += rows
        return list({row.trace_id: row for row in found}.values())


def response_digest(response_id: str) -> bytes:
    """Returns the digest that a response is found by. A collision does no harm: who asks compares the ids as well."""
    return hashlib.blake2b(response_id.encode(errors="surrogatepass"), digest_size=8).digest()
