"""Writes results as JSON lines to a file, exactly once.

After a crash the file is truncated to the length stored with the cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import FilePath, Section
from pandaeval_collector.exporters import Row, Sent, Surroundings


class Jsonl(Section):
    """Results as lines of JSON in a file."""

    path: FilePath | None = None
    """File to which the collector appends results. If null, this exporter is off."""


SETTINGS = Jsonl


def exporters(settings: Jsonl, _: Surroundings) -> Iterator[JsonlExporter]:
    if settings.path is not None:
        yield JsonlExporter(Path(settings.path))


class JsonlExporter:
    """Appends results to a file, exclusively. Other writers' lines are cut at the next start."""

    name = "jsonl"
    source = "results"
    off = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    async def open(self, position: str) -> str:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        except OSError as error:
            raise UserError(
                f"exporters.jsonl.path: {self.path} cannot be written: {error.strerror or error}"
            ) from error
        # The file's name has to survive a power cut: a result file that is gone would not be written again.
        with contextlib.suppress(OSError):  # not every folder can be opened or synced
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        length = os.fstat(self._file).st_size
        if position and int(position) < length:
            length = int(position)
            os.ftruncate(self._file, length)
        return str(length)

    async def export(self, rows: Sequence[Row]) -> Sent:
        position = await asyncio.to_thread(self._append, b"".join(row.body + b"\n" for row in rows))
        return Sent(len(rows), position)

    async def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, lines: bytes) -> str:
        if self._file is None:
            raise RuntimeError("the exporter is closed")
        before = os.fstat(self._file).st_size
        view = memoryview(lines)
        try:
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)  # all of it is written again later
            raise
        return str(before + len(lines))
