"""Prints API rows as a table or JSON lines, and a single row in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from pandaeval_collector.cli._output import print_json, print_list, print_table
from pandaeval_collector.cli._run_options import RunFormat

Row = Mapping[str, Any]
ID = 12
"""Characters of an ID in a table: IDs are accepted by prefix, and are never cut further."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Format of a list.

    ``columns``: keys, or headings with a key or a cell function. ``empty``: text without rows. ``says_why``: the last
    column is a sentence.
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


def show_one(row: Row, tell: Callable[[Row], None], format_: RunFormat) -> None:
    """Print a row in full: with ``tell``, or as a JSON line."""
    print_json([row]) if format_ == "json" else tell(row)
