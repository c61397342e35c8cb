"""What commands print with: colours and lines on a terminal, plain text everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from pandaeval_collector.base.untrusted.printable import one_printable_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 100_000


def console(*, stderr: bool = False, file: TextIO | None = None) -> Console:
    """A console that never reads markup in what it prints, nor passes on what a terminal would obey. It does obey
    ``NO_COLOR``; without a terminal nothing is cut to a width, so that a table keeps one line per row."""
    from pandaeval_collector.cli._console import PlainConsole

    made = PlainConsole(stderr=stderr, file=file, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDE
    return made


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, on: Console, title: str | None = None) -> Table:
    """A table to print on the console ``on``; a cell may be a rich ``Text``, all else is shown as ``safe`` text."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    look = box.SIMPLE_HEAD if on.is_terminal else None
    made = Table(*columns, title=title, title_justify="left", box=look, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(safe(str(cell))) for cell in row))
    return made


def safe(text: str) -> str:
    """``text`` on one line, with all that a terminal would obey written out (``\\x1b``)."""
    return one_printable_line(text)


def many(count: int, what: str) -> str:
    """A count and what is counted, as ``1,204 traces``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
