"""Prints what the API answers: rows as a table or as lines of JSON, and one of them in full. Ids, which people type
again, are never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import typer

from pandaeval_collector.cli._output import many, print_json, print_list, print_table, safe
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.show.view.lines import headline, incident_line, result_text, session_headline, trace_lines
from pandaeval_collector.show.view.texts import NONE, moment, said

Row = Mapping[str, Any]
_MOST, ID = 100, 12
"""Characters of a reason in a table, and of an id, which are enough to ask for it."""


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


TRACES = Listing(
    (
        ("trace", lambda row: row["trace_id"][:ID]),
        "agent",
        ("started", lambda row: moment(row["started_at"])),
        ("seconds", lambda row: f"{row['duration_us'] / 1e6:.1f}"),
        ("failed", lambda row: "yes" if row["failed"] else ""),
        ("session", lambda row: row["session_id"] or NONE),
        ("what was found", lambda row: headline(row, _MOST)),
    ),
    "no trace is like that",
    says_why=True,
)
SESSIONS = Listing(
    (
        (
            "session",
            lambda row: row["session_id"] or (f"trace {row['worst']['trace_id'][:ID]}" if row["worst"] else NONE),
        ),
        ("agent", lambda row: row["worst"]["agent"] if row["worst"] else NONE),
        "traces",
        ("failed", lambda row: row["failed_traces"]),
        ("last", lambda row: moment(row["last_at"])),
        ("worst trace", lambda row: row["worst"]["trace_id"][:ID] if row["worst"] else NONE),
        ("what was found", lambda row: session_headline(row, _MOST)),
    ),
    "no session is like that",
    says_why=True,
)
INCIDENTS = Listing(
    (
        *("id", "severity"),
        ("state", lambda row: row["triage"]["state"]),
        "runs",
        ("last", lambda row: moment(row["last_at"])),
        ("agent", lambda row: ", ".join(row["agents"])),
        ("cause", lambda row: said(f"{row['label'].replace('_', ' ')}: {row['reason']}", 2 * _MOST)),
    ),
    "no incident is like that",
    says_why=True,
)
SCHEDULES = Listing(
    (
        "id",
        ("cron (UTC)", lambda row: row["cron"]),
        ("next", lambda row: "paused" if row["next_at"] is None else moment(row["next_at"])),
        ("last run", lambda row: row["last_run"] or ""),
        ("metrics", lambda row: ", ".join(row["run"]["metrics"])),
        ("name", lambda row: row["run"]["name"]),
    ),
    "no schedules",
)


def tell_trace(row: Row) -> None:
    """Prints all that is known of one trace."""
    _lines((f"trace {row['trace_id']}", *trace_lines(row)))


def tell_session(row: Row) -> None:
    """Prints one session: its results, then its traces in order."""
    state = ", still open" if row["open"] else ""
    head = f"session {row['session_id']}: {many(row['traces'], 'trace')}, {row['failed_traces']} failed{state}"
    _lines((head, *(f"- {result_text(each, 400)}" for each in row["now"] or row["results"])))
    show(row["members"], TRACES)


def tell_incident(row: Row) -> None:
    """Prints one incident, of what its runs are, and the newest of them."""
    parts = (f"- {each['kind']} {each['name']}: {each['failed']} of {each['runs']} failed" for each in row["parts"])
    _lines((incident_line(row), *parts))
    show(row["examples"], TRACES)


def _lines(lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        typer.echo(safe(line))
