"""Simulates power cuts by replaying recorded file operations (disk_log.c).

Unsynced writes are kept, lost or partial at random; unsynced names revert.
"""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = struct.Struct("<dBHQI")
_SOURCE = Path(__file__).with_name("disk_log.c")
_SECTOR = 512
_NOT_ON_DISK = ("-shm", ".log", "lock")
"""Files without data, such as SQLite's shared memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """``kind``: W(rite), S(ync), T(runcate), C(reate), U(nlink), R(ename). ``at``: start time."""

    at: float
    kind: str
    path: str
    offset: int
    data: bytes


def compiled(folder: Path) -> Path:
    """Return the preload library."""
    library = folder / "disk_log.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"], check=True)
    return library


def logged(library: Path, log: Path, folder: Path) -> dict[str, str]:
    """Return an environment that records file operations."""
    return {"LD_PRELOAD": str(library), "DISK_LOG": str(log), "DISK_LOG_OF": str(folder)}


def steps(log: Path) -> Iterator[Step]:
    """Return recorded operations without a truncated last one."""
    content, at = memoryview(log.read_bytes()), 0
    while at + _HEAD.size <= len(content):
        when, kind, path_size, offset, size = _HEAD.unpack_from(content, at)
        data_at = at + _HEAD.size + path_size
        if data_at + size > len(content):
            return
        path = bytes(content[at + _HEAD.size : data_at]).decode()
        if not path.endswith(_NOT_ON_DISK):
            yield Step(when, chr(kind), path, offset, bytes(content[data_at : data_at + size]))
        at = data_at + size


@dataclass(slots=True)
class _File:
    """``content``: safe data; ``unsynced``: uncertain writes."""

    content: bytearray = field(default_factory=bytearray)
    unsynced: list[Step] = field(default_factory=list)

    def kept(self, chance: random.Random, share: float) -> bytearray:
        """Return the content after a cut."""
        content = bytearray(self.content)
        for step in self.unsynced:
            if chance.random() < share:
                _apply(content, step, chance if chance.random() < 0.2 else None)
        return content

    def sync(self) -> None:
        for step in self.unsynced:
            _apply(self.content, step)
        self.unsynced.clear()


class Disk:
    """All files of a folder during replay."""

    def __init__(self) -> None:
        self._now: dict[str, _File] = {}
        self._kept: dict[str, _File] = {}
        self._unsynced_names: list[tuple[str, str, _File | None]] = []

    def do(self, step: Step) -> None:
        match step.kind:
            case "C":
                self._create(step)
            case "U":
                self._name(step.path, None)
            case "R":
                file, to = self._now[step.path], step.data.decode()
                self._name(to, file)
                self._name(step.path, None)
            case "S" if step.path not in self._now:
                self._sync_names(step.path)
            case "S":
                self._now[step.path].sync()
            case _:
                self._file(step.path).unsynced.append(step)

    def after_a_cut(self, chance: random.Random) -> dict[str, bytes]:
        """Return content by path after a cut now."""
        names = dict(self._kept)
        for _, path, file in self._unsynced_names[: chance.randint(0, len(self._unsynced_names))]:
            _set(names, path, file)
        share = chance.choice((0.0, 0.3, 0.7, 0.95))
        return {path: bytes(file.kept(chance, share)) for path, file in names.items()}

    def _file(self, path: str) -> _File:
        """Return a file, also if removed while open."""
        return self._now.get(path) or _File()

    def _create(self, step: Step) -> None:
        if step.offset:  # an existing file was truncated
            self._file(step.path).unsynced.append(Step(step.at, "T", step.path, 0, b""))
        else:
            self._name(step.path, _File())

    def _name(self, path: str, file: _File | None) -> None:
        _set(self._now, path, file)
        self._unsynced_names.append((str(Path(path).parent), path, file))

    def _sync_names(self, directory: str) -> None:
        """Make names of this directory, and earlier ones, safe."""
        last = max((n for n, each in enumerate(self._unsynced_names) if each[0] == directory), default=-1)
        for _, path, file in self._unsynced_names[: last + 1]:
            _set(self._kept, path, file)
        del self._unsynced_names[: last + 1]


def _set(names: dict[str, _File], path: str, file: _File | None) -> None:
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file


def _apply(content: bytearray, step: Step, torn: random.Random | None = None) -> None:
    if step.kind == "T":
        del content[step.offset :]
        content.extend(bytes(step.offset - len(content)))
        return
    content.extend(bytes(max(0, step.offset + len(step.data) - len(content))))
    for at in range(0, len(step.data), _SECTOR if torn else max(1, len(step.data))):
        if torn is None or torn.random() < 0.5:
            part = step.data[at : at + _SECTOR] if torn else step.data
            content[step.offset + at : step.offset + at + len(part)] = part
