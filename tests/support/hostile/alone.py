"""Attacks that need their own collector or command.

Each gets an empty folder and a scale, and returns problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from support.hostile import judges, metric_files, stores, texts, trace_stores

Alone = Callable[[Path, int], Iterable[str]]
ALONE: Mapping[str, Alone] = {
    "the lock is removed": stores.unlocked,
    "replies that are no verdicts": judges.not_verdicts,
    "errors that quote the key": judges.quoting,
    "text that writes to the terminal": texts.on_a_terminal,
    "configurations that grow": texts.growing,
    "metrics and cases that grow": metric_files.growing,
    "trace stores that do harm": trace_stores.answering,
}
