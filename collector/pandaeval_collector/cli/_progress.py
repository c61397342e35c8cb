"""A progress bar on a terminal, silence everywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pandaeval_collector.cli._terminal import guarded

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def progress(console: Console, what: str = "judging") -> Iterator[Callable[[int, int], None]]:
    """Gives a function that is told how many of how many are done; the bar appears when it is first called."""
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar, guarded():
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
