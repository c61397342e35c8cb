"""Command output: colours and progress bars on a terminal, else plain text; and output files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NoReturn, TextIO, cast

import orjson
import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line, printable
from pandaeval_collector.cli._terminal import guarded, unproxied, write_json
from pandaeval_collector.show.view.texts import NO_VALUE, many as many

_WIDE, _MOST_REASON = 100_000, 300
_SHORT = 24
"""Maximum length of a cell without a space that is never folded: IDs, times, numbers."""
_NAMES = ("agent", "service", "metric", "name")
"""Columns that are folded first if a line is too long."""
Row = Mapping[str, Any]
ID = 12
"""Characters of an ID in a table. Commands accept this prefix as an ID."""
RunFormat = Literal["table", "json"]
"""The formats in which commands print."""


def console(*, stderr: bool = False, file: TextIO | None = None) -> Console:
    """Return a console without markup and control sequences. Respects ``NO_COLOR``."""
    made = PlainConsole(stderr=stderr, file=file, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDE
    return made


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, on: Console, **given: Any) -> Table:
    """Return a table for the console ``on``. Omits empty columns. Cells: rich ``Text``, or texts.

    ``given``: title and caption.
    """
    look = box.SIMPLE_HEAD if on.is_terminal else None
    made = Table(title_justify="left", caption_justify="left", box=look, pad_edge=False, header_style="bold", **given)
    held = [[cell if isinstance(cell, Text) else Text(safe(str(cell))) for cell in row] for row in rows]
    kept = [at for at in range(len(columns)) if not held or any(row[at].plain not in ("", NO_VALUE) for row in held)]
    for at in kept:
        is_short = all(len(row[at]) <= _SHORT and " " not in row[at].plain for row in held)
        made.add_column(columns[at], no_wrap=is_short and columns[at] not in _NAMES, overflow="fold")
    for row in held:
        made.add_row(*(row[at] for at in kept))
    return made


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    on: Console | None = None,
    caption: str | None = None,
) -> None:
    out = on or console()
    out.print(table(columns, rows, on=out, title=title, caption=caption))


def print_list(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None, on: Console | None = None
) -> None:
    """Print a :func:`table` whose last column is a reason."""
    out = on or console()
    if out.width >= _WIDE:
        return print_table(columns, rows, title, out)
    held = [*rows]
    made = table(columns[:-1], [row[:-1] for row in held], on=out, title=title)
    made.show_edge = False
    for column in made.columns:
        column.overflow = "ellipsis"
        for cell in column.cells:
            if isinstance(cell, Text):
                cell.no_wrap = True
    lines = out.render_lines(made, pad=False)
    head = len(lines) - len(held)
    for line, why in zip(lines, [""] * head + [safe(str(row[-1])) for row in held], strict=True):
        out.print(Segments([*line, Segment.line()]), end="")
        if why:
            out.print(Padding(Text(why), (0, 0, 0, 2)))


def reason_room(on: Console | None = None) -> int:
    """Return the characters of a reason that fit three lines, at most 300."""
    return min(_MOST_REASON, 3 * ((on or console()).width - 4))


def safe(text: str) -> str:
    """Return ``text`` on one line, with control characters escaped (``\\x1b``)."""
    return one_printable_line(text)


def message(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(safe(text), err=True)


def notice(text: str) -> None:
    message(f"notice: {text}")


@contextmanager
def progress(what: str, on: Console | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yield a function for the number of items done and of all, with a progress bar. Default: on standard error."""
    out = on or console(stderr=True)
    if not out.is_terminal:
        yield lambda done, total: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=out, transient=True) as bar, guarded():
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@contextmanager
def binary_file(output: Path) -> Iterator[BinaryIO]:
    """Open a file, or standard output for ``-``. Raises ``UserError``."""
    if str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    try:
        file = output.open("wb")
    except OSError as error:
        cure = "name a writable file in an existing folder"
        raise UserError(f"{output} cannot be written: {error.strerror}; {cure}") from error
    with file:
        yield file


@contextmanager
def output_file(path: Path | None) -> Iterator[TextIO]:
    """Open a file, or standard output for ``-`` or without ``path``. Raises ``UserError``."""
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    with binary_file(path) as file, TextIOWrapper(file, encoding="utf-8") as text:
        yield text


def write_json_line(target: TextIO, line: bytes) -> None:
    """Write a line of JSON; to a terminal with unsafe characters escaped."""
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")


def write_json_lines(objects: Iterable[object], target: TextIO) -> None:
    for each in objects:
        write_json_line(target, orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY))


def print_json(items: Iterable[Mapping[str, Any]]) -> None:
    for item in items:
        write_json(json.dumps(item, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Listing:
    """Format of a list.

    ``columns``: keys, or headings with a key or a cell function. ``empty``: text if there are no rows. ``says_why``:
    the last column is a sentence.
    """

    columns: Sequence[str | tuple[str, str | Callable[[Row], object]]]
    empty: str = ""
    title: str | None = None
    says_why: bool = False


def show(rows: Sequence[Row], listing: Listing, format_: RunFormat = "table", on: Console | None = None) -> None:
    if format_ == "json":
        return print_json(rows)
    if not rows:
        return typer.echo(listing.empty) if listing.empty else None
    columns = [(column, column) if isinstance(column, str) else column for column in listing.columns]
    cells = [[row[of] if isinstance(of, str) else of(row) for _, of in columns] for row in rows]
    (print_list if listing.says_why else print_table)([name for name, _ in columns], cells, listing.title, on)


def show_one(row: Row, print_row: Callable[[Row], None], format_: RunFormat) -> None:
    """Print a row in full: with ``print_row``, or as a JSON line."""
    print_json([row]) if format_ == "json" else print_row(row)


class PlainConsole(Console):
    """A rich console that escapes unsafe characters, except for our styles."""

    @property
    def file(self) -> IO[str]:
        return unproxied(cast(TextIO, Console.file.__get__(self)))

    @file.setter
    def file(self, file: IO[str]) -> None:
        self._file = file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        """Raise :class:`BrokenPipeError`. Rich would exit with 1, which means a missed threshold."""
        raise BrokenPipeError
