"""Prints rows that the API returns, as a table or as lines of JSON, and a single row in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import typer

from pandaeval_collector.cli._output import print_json, print_list, print_table
from pandaeval_collector.cli._run_options import RunFormat

Row = Mapping[str, Any]
ID = 12
"""Characters of an ID in a table: IDs are accepted by prefix, and are never cut further."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How to print a list. ``columns``: each heading, and how to get a row's cell, where it is not what the row has by
    that name; ``empty``: the text for no rows; ``says_why``: the last column is a sentence."""

    columns: Sequence[str | tuple[str, Callable[[Row], object]]]
    empty: str = ""
    title: str | None = None
    says_why: bool = False


def show(rows: Sequence[Row], listing: Listing, format_: RunFormat = "table") -> None:
    """Prints a list: a table, or one JSON object a line."""
    if format_ == "json":
        print_json(rows)
    elif rows:
        (print_list if listing.says_why else print_table)(*cells(rows, listing), listing.title)
    elif listing.empty:
        typer.echo(listing.empty)


def cells(rows: Iterable[Row], listing: Listing) -> tuple[list[str], list[list[object]]]:
    """Return the headings of a list and the cells of each row."""
    columns = [(column, itemgetter(column)) if isinstance(column, str) else column for column in listing.columns]
    return [name for name, _ in columns], [[of(row) for _, of in columns] for row in rows]


def show_one(row: Row, tell: Callable[[Row], None], format_: RunFormat) -> None:
    """Prints one row in full: ``tell`` does it for people, or it is one JSON object on a line."""
    print_json([row]) if format_ == "json" else tell(row)
