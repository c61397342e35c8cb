"""Prints API rows as a table or JSON lines, and a single row in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

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


def show(rows: Sequence[Row], listing: Listing, format_: RunFormat = "table") -> None:
    if format_ == "json":
        print_json(rows)
    elif rows:
        (print_list if listing.says_why else print_table)(*cells(rows, listing), listing.title)
    elif listing.empty:
        typer.echo(listing.empty)


def cells(rows: Iterable[Row], listing: Listing) -> tuple[list[str], list[list[object]]]:
    columns = [(column, column) if isinstance(column, str) else column for column in listing.columns]
    shown = [[row[of] if isinstance(of, str) else of(row) for _, of in columns] for row in rows]
    return [name for name, _ in columns], shown


def show_one(row: Row, tell: Callable[[Row], None], format_: RunFormat) -> None:
    """Print a row in full: with ``tell``, or as a JSON line."""
    print_json([row]) if format_ == "json" else tell(row)
