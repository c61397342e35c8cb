"""Results below a score, as lines of text in a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pandaeval_collector import FilePath, Row, Section, Sent, Share, Surroundings


class Alarm(Section):
    """Results below a score, as lines of text in a file."""

    path: FilePath | None = None
    """File that lines are appended to; null: none."""
    below: Share = 0.5
    """Results with a score below this one are told."""


SETTINGS = Alarm


def exporters(settings: Alarm, around: Surroundings) -> Iterator[AlarmExporter]:
    """One, when there is a file to write to."""
    if settings.path is not None:
        yield AlarmExporter(Path(settings.path), settings.below)


class AlarmExporter:
    """Each result at least once: after a crash the last batch is told again."""

    name = "alarm"
    source = "results"
    off = False

    def __init__(self, path: Path, below: float) -> None:
        self._path, self._below = path, below

    async def open(self, position: str) -> str:
        return position

    async def export(self, rows: Sequence[Row]) -> Sent:
        found = [json.loads(row.body) for row in rows]
        bad = [each for each in found if each["score"] is not None and each["score"] < self._below]
        lines = [f"{each['score']:.2f} {each['level']}.{each['metric']} {each['trace_id']}\n" for each in bad]
        await asyncio.to_thread(self._append, "".join(lines))
        return Sent(len(rows))

    async def close(self) -> None:
        pass

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)
