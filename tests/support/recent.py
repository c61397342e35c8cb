"""Recorded spans with current times."""

from __future__ import annotations

import re
import time
from pathlib import Path

_TIME = re.compile(r'("(?:start|end|observed)?[tT]imeUnixNano": ?"?)(\d{16,20})')


def recent(files: list[Path], folder: Path, minutes: int = 50) -> list[Path]:
    """Copy files to ``folder`` with trace times within the last ``minutes``."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, file in enumerate(files):
        text = file.read_text("utf-8")
        first = min(int(found[2]) for found in _TIME.finditer(text))
        begin = time.time_ns() - int(minutes * 60e9 * (1 - number / max(1, len(files))))
        shift = begin - first
        copy = folder / f"{number}-{file.name}"
        copy.write_text(_TIME.sub(lambda found, by=shift: f"{found[1]}{int(found[2]) + by}", text), "utf-8")
        made.append(copy)
    return made
