"""``pandaeval traces``, ``sessions`` and ``failures``: lists and single items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import ListGroup, argument, option
from pandaeval_collector.cli._output import ID, Listing, Row, many, message, reason_room, safe, show, show_one
from pandaeval_collector.cli._person import user_name
from pandaeval_collector.cli._run_place import ApiClient, with_api_or_store, with_collector_api
from pandaeval_collector.show.view.lines import (
    headline,
    incident_line,
    others_of_session,
    session_headline,
    session_lines,
    step_lines,
    trace_lines,
)
from pandaeval_collector.show.view.texts import NO_VALUE, moment, redacted_line, units
from pandaeval_collector.store.triage import Standing, State

_Most = Annotated[int, option("Maximum number of rows.", min=1)]
_Id = Annotated[str, argument("ID, as the command list prints it.", metavar="ID")]
_Level: Any = Literal[tuple(SEVERITIES)]


TRACES = Listing(
    (
        ("trace", lambda row: row["trace_id"][:ID]),
        "agent",
        ("started", lambda row: moment(row["started_at"])),
        ("seconds", lambda row: f"{row['duration_us'] / 1e6:.1f}"),
        ("failed", lambda row: "yes" if row["failed"] else ""),
        ("session", lambda row: row["session_id"] or NO_VALUE),
        ("finding", lambda row: headline(row, reason_room())),
    ),
    "no trace matches",
    says_why=True,
)
SESSIONS = Listing(
    (
        (
            "session",
            lambda row: row["session_id"] or f"trace {_of_worst(row, 'trace_id')[:ID]}",
        ),
        ("agent", lambda row: _of_worst(row, "agent")),
        "traces",
        ("failed", "failed_traces"),
        ("last", lambda row: moment(row["last_at"])),
        ("worst trace", lambda row: _of_worst(row, "trace_id")[:ID]),
        ("finding", lambda row: session_headline(row, reason_room())),
    ),
    "no session matches",
    says_why=True,
)
INCIDENTS = Listing(
    (
        *("id", "severity"),
        ("state", lambda row: row["triage"]["state"]),
        ("count", units),
        ("last", lambda row: moment(row["last_at"])),
        ("agent", lambda row: ", ".join(row["agents"])),
        ("cause", lambda row: redacted_line(f"{row['label'].replace('_', ' ')}: {row['reason']}", 2 * reason_room())),
    ),
    "no incident matches",
    says_why=True,
)

traces = typer.Typer(help="List or show agent traces, worst first.", cls=ListGroup)
sessions = typer.Typer(help="List or show sessions, worst first.", cls=ListGroup)
failures = typer.Typer(help="List or show incidents, or set their state.", cls=ListGroup)


@traces.command("list")
@given.filtered()
@with_api_or_store
def list_traces(
    filters: dict[str, Any],
    limit: _Most = 50,
    newest: Annotated[bool, option("Sort by time, newest first; default: worst first.", "--newest")] = False,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """List traces, worst first."""
    asked = {**filters, "order": "newest" if newest else "worst"}
    show([*api.pages("/traces", limit, **asked)], TRACES, format_)


@sessions.command("list")
@given.filtered()
@with_api_or_store
def list_sessions(
    filters: dict[str, Any], limit: _Most = 50, format_: given.Format = "table", *, api: ApiClient
) -> None:
    """List sessions, and runs without a session, worst first."""
    show([*api.pages("/sessions", limit, **filters)], SESSIONS, format_)


@failures.command("list")
@given.filtered()
@with_api_or_store
def list_failures(
    filters: dict[str, Any],
    severity: Annotated[_Level | None, option("Minimum severity.")] = None,
    state: Annotated[Standing, option("Triage state; open means new or known.")] = "open",
    limit: Annotated[int, option("Maximum number of incidents.", min=1, max=500)] = 50,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """List incidents (groups of failures with the same cause)."""
    asked = {**filters, "severity": severity, "state": state, "limit": limit}
    show(api.get("/incidents", **asked)["incidents"], INCIDENTS, format_)


@failures.command("set")
@with_collector_api
def set_state(
    id_: _Id,
    state: Annotated[State | None, option("New state; default: unchanged.")] = None,
    note: Annotated[str | None, option("Reason or ticket; default: unchanged.")] = None,
    *,
    api: ApiClient,
) -> None:
    """Set the state or note of an incident.

    The command needs a running collector. Give --state, --note or both."""
    if state is None and note is None:
        raise UserError("give --state, --note or both")
    row = api.get(f"/incidents/{quote(id_, safe='')}")
    held = row["triage"]
    if note is None:
        note = held["note"] if held["back_at"] is None else ""  # a returned incident has the note of its resolution
    new = {"ids": row["ids"], "state": state or held["state"], "note": note, "by": user_name()}
    done = api.post("/incidents/state", new)
    message(f"{row['id']} is {done['state']}")


def _of_worst(session: Row, key: str) -> str:
    worst = session["worst"] or {}
    return str(worst.get(key, NO_VALUE))


def _tell_trace(row: Row) -> None:
    _lines((f"trace {row['trace_id']}", *trace_lines(row), *step_lines(row)))


def _tell_session(row: Row) -> None:
    head = f"session {row['session_id']}: {many(row['traces'], 'trace')}, {row['failed_traces']} failed"
    if row["open"]:
        head += ", still open"
    _lines((head, *session_lines(row), *others_of_session(row)))
    show(row["members"], TRACES)


def _tell_incident(row: Row) -> None:
    parts = (f"- {each['kind']} {each['name']}: {each['failed']} of {each['runs']} failed" for each in row["parts"])
    _lines((incident_line(row), *parts))
    show(row["examples"], TRACES)


def _lines(lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        typer.echo(safe(line))


def _add_show(group: typer.Typer, kind: str, print_row: Callable[[Row], None], text: str) -> None:
    @group.command("show", help=text)
    @with_api_or_store
    def show(id_: _Id, format_: given.Format = "table", *, api: ApiClient) -> None:
        row = api.get(f"/{kind}/{quote(id_, safe='')}")
        show_one(row, print_row, format_)


_add_show(traces, "traces", _tell_trace, "Show a trace: input, answer, calls and results.")
_add_show(sessions, "sessions", _tell_session, "Show a session: its results, and its traces in time order.")
_add_show(
    failures,
    "incidents",
    _tell_incident,
    "Show an incident: counts by agent, version and model; runs.",
)
