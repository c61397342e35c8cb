"""A note beside the store of how far it was committed: at the next start it shows what a damaged log or an older copy
of the file lacks.

SQLite ends its log at the first damaged frame and reports nothing: the store is whole then, and older. The note is
written after each commit and not synced: a killed process leaves it as it was, and a power cut leaves it level with the
store or behind it, never ahead (``store.durability: full``).
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from pandaeval_collector.store.directory import is_at

MARK_NAME = "pandaeval.mark"
_NOTE = struct.Struct("<8s16sIQd")  # what it is, the store's id, number of the commit, newest chunk, Unix seconds
_SUM = struct.Struct("<I")
_KIND = b"pandaev1"
_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Noted:
    """The content of the note. ``store``: the id of the store. ``number``: of its newest commit that has one;
    ``chunk``: id of the newest chunk that was ever committed."""

    store: bytes
    number: int
    chunk: int
    at: float

    def missing(self, store: bytes, number: int, chunk: int) -> str:
        """What a store lacks that got as far as ``number`` and ``chunk``, as a clause; empty where it lacks nothing."""
        last = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(self.at))
        if store != self.store:
            some = self.number or self.chunk
            return f"it is not the store that took {self.chunk} parts of traces up to {last}" if some else ""
        parts, commits = max(0, self.chunk - chunk), max(0, ahead(self.number, number))
        if not parts and not commits:
            return ""
        return f"the last {parts} parts of traces and {commits} numbered commits are missing, up to {last}"


class LossMark:
    """The file of the note. One thread writes; any thread may look."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / MARK_NAME
        self._handle = self._open()

    def read(self) -> Noted | None:
        """The note; ``None`` where there is none that can be read."""
        content = os.pread(self._handle, _NOTE.size + _SUM.size, 0)
        note, rest = content[: _NOTE.size], content[_NOTE.size :]
        if len(rest) != _SUM.size or _SUM.unpack(rest) != (zlib.crc32(note),):
            return None
        kind, store, number, chunk, at = _NOTE.unpack(note)
        return Noted(store, number, chunk, at) if kind == _KIND else None

    def write(self, store: bytes, number: int, chunk: int) -> None:
        """Notes a commit, in place. A disk that is full must not undo it, so an error is no news: the note lags."""
        note = _NOTE.pack(_KIND, store, number, chunk, time.time())
        with contextlib.suppress(OSError):
            os.pwrite(self._handle, note + _SUM.pack(zlib.crc32(note)), 0)

    def look(self) -> bool:
        """Puts the file back, empty, if it was removed; returns whether it was."""
        was_removed = not is_at(self._path, os.fstat(self._handle))
        if was_removed:
            with contextlib.suppress(OSError):  # the directory may be gone, which has consequences of its own
                found = self._open()
                os.dup2(found, self._handle, inheritable=False)  # in one step: another thread may be writing
                os.close(found)
        return was_removed

    def close(self) -> None:
        os.close(self._handle)

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)


def ahead(number: int, other: int) -> int:
    """By how much ``number`` is ahead of ``other``, below zero where it is behind. Numbers start again at 0 after 32
    bits."""
    return (number - other + _WRAP // 2) % _WRAP - _WRAP // 2
