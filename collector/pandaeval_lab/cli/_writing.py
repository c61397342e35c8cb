"""Where commands write what takes a while: a file or standard output, and how far they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._terminal import guarded, write_json


@contextmanager
def output_file(path: Path | None) -> Iterator[TextIO]:
    """Opens the file to write to, or yields standard output, which it does not close."""
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"--output {path}: {why}; name a file in a folder that is there") from error
    with file:
        yield file


def write_json_line(target: TextIO, line: bytes) -> None:
    """Writes a line of JSON to what :func:`output_file` gave: unchanged to a file, to a terminal with unsafe characters
    as JSON escapes."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")


@contextmanager
def throughput(console: Console, spans: int, size: int) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the bytes whose traces were scored since its last call. The progress bar shows
    spans, estimated from their share of the bytes (``size`` in all), and how many a second."""
    if not console.is_terminal:
        yield lambda scored: None
        return
    columns = TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("spans {task.fields[rate]}")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar, guarded():
        task = bar.add_task("scoring", total=spans, visible=False, rate="")
        started, done = time.monotonic(), 0

        def told(scored: int) -> None:
            nonlocal done
            done += scored
            shown = round(spans * done / size) if size else spans
            rate = shown / max(1e-3, time.monotonic() - started)
            bar.update(task, completed=shown, visible=True, rate=f"{rate:,.0f}/s")

        yield told
