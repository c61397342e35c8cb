"""Prints a collector's traces, sessions and failures as tables. Ids, which people type again, are never cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from pandaeval_collector.cli._output import console, many, safe, table
from pandaeval_collector.cli._run_tables import print_json
from pandaeval_collector.show.mcp.lines import moment, result_text, trace_lines

Row = Mapping[str, Any]
_MOST = 100
"""Characters of a reason in a table."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How to print a list. ``columns``: each heading, and how to get a row's cell; ``empty``: the text for no rows."""

    columns: Sequence[tuple[str, Callable[[Row], object]]]
    empty: str


TRACES = Listing(
    (
        ("trace", lambda row: row["trace_id"]),
        ("agent", lambda row: row["agent"]),
        ("started", lambda row: moment(row["started_at"])),
        ("seconds", lambda row: f"{row['duration_us'] / 1e6:.1f}"),
        ("failed", lambda row: row["failed"]),
        ("session", lambda row: row["session_id"] or "-"),
        ("worst", lambda row: _worst(row)),
    ),
    "no trace is like that",
)
SESSIONS = Listing(
    (
        ("session", lambda row: row["session_id"] or "-"),
        ("traces", lambda row: row["traces"]),
        ("failed", lambda row: row["failed_traces"]),
        ("last", lambda row: moment(row["last_at"])),
        ("worst trace", lambda row: row["worst"]["trace_id"] if row["worst"] else "-"),
        ("worst", lambda row: _worst(row["worst"] or row)),
    ),
    "no session is like that",
)
FAILURES = Listing(
    (
        ("id", lambda row: row["id"]),
        ("severity", lambda row: row["severity"]),
        ("count", lambda row: row["occurrences"]),
        ("last", lambda row: moment(row["last_at"])),
        ("agent", lambda row: row["agent"]),
        ("metric", lambda row: row["metric"]),
        ("cause", lambda row: row["title"]),
    ),
    "no failures",
)


def show(rows: Sequence[Row], listing: Listing, as_json: bool) -> None:
    """Prints a list: a table, or one JSON object a line."""
    if as_json:
        return print_json([dict(row) for row in rows])
    if not rows:
        return typer.echo(listing.empty)
    out = console()
    out.print(
        table([name for name, _ in listing.columns], [[of(row) for _, of in listing.columns] for row in rows], on=out)
    )


def show_trace(row: Row, as_json: bool) -> None:
    """Prints all that is known of one trace."""
    if as_json:
        return print_json([dict(row)])
    _lines((f"trace {row['trace_id']}", *trace_lines(row)))


def show_session(row: Row, as_json: bool) -> None:
    """Prints one session: its results, then its traces in order."""
    if as_json:
        return print_json([dict(row)])
    state = ", still open" if row["open"] else ""
    _lines((f"session {row['session_id']}: {many(row['traces'], 'trace')}, {row['failed_traces']} failed{state}",))
    _lines(f"- {result_text(each, 400)}" for each in row["now"] or row["results"])
    show(row["members"], TRACES, as_json=False)


def show_failures(row: Row, as_json: bool) -> None:
    """Prints one group of failures with its newest examples."""
    if as_json:
        return print_json([dict(row)])
    when = f"{row['occurrences']} times, {moment(row['first_at'])} to {moment(row['last_at'])}"
    head = f"{row['severity']}: {row['title']} ({when})"
    about = f"agent {row['agent']}, service {row['service']}, metric {row['metric']}, label {row['label']}"
    _lines((head, about, row["description"]))
    _lines(f"- trace {each['trace_id']} at {moment(each['at'])}: {each['reason']}" for each in row["examples"])


def _worst(row: Row) -> str:
    if row.get("error") is not None:
        return f"run failed: {row['error']}"[:_MOST]
    scored = next((each for each in row["results"] if each["outcome"] == "scored"), None)
    return "nothing is scored" if scored is None else result_text(scored, _MOST)


def _lines(lines: Any) -> None:
    for line in lines:
        if line:
            typer.echo(safe(line))
