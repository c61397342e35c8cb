"""An in-memory filter of stored ids, which avoids disk reads for new traces."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from threading import Lock

_log = logging.getLogger(__name__)

_BITS = 26
_MASK = (1 << _BITS) - 1


class Seen:
    """A thread-safe Bloom filter of 8 MiB; false positives: 2 % at five million ids. Always true until ``complete``."""

    def __init__(self) -> None:
        self.complete, self._closing = False, False
        self._bits = bytearray(b"\0" * (1 << (_BITS - 3)))  # written now, so that resident memory does not grow later
        self._adding = Lock()

    def add(self, ids: Iterable[bytes]) -> None:
        bits = self._bits
        with self._adding:
            for id_ in ids:
                hashed = hash(id_)  # 64 bits with a random key per process, so senders cannot cause collisions
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
        self._filling = threading.Thread(target=self._fill, args=(scan, ids), name="pandaeval-seen", daemon=True)
        self._filling.start()

    def stop(self) -> None:
        self._closing = True
        self._filling.join()

    def _fill(self, scan: Callable[[], AbstractContextManager[sqlite3.Connection]], ids: str) -> None:
        try:
            with scan() as reader:
                rows = reader.execute(ids)
                while (some := rows.fetchmany(1000)) and not self._closing:
                    self.add(id_ for (id_,) in some)
        except sqlite3.Error as error:  # without a filter, every new id is looked up on disk
            _log.warning("the ids of decided traces could not be read (%s)", error)
            return
        self.complete = not self._closing
