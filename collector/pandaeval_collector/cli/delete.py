"""``pandaeval delete``: deletes the data of a user, a session, a trace, or before a day."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import option
from pandaeval_collector.cli._output import message
from pandaeval_collector.cli._person import confirm, user_name
from pandaeval_collector.cli._run_place import ApiClient, with_collector_api


@with_collector_api
def delete(
    user: Annotated[str, option("Delete the traces and sessions of this user.", metavar="ID")] = "",
    session: Annotated[str, option("Delete this session and its traces.", metavar="ID")] = "",
    trace: Annotated[str, option("Delete this trace (32 hexadecimal digits).", metavar="ID")] = "",
    before: Annotated[str, option("Delete runs that began before this day (UTC).", metavar="DAY")] = "",
    yes: Annotated[bool, option("Do not ask before deleting.", "--yes")] = False,
    *,
    api: ApiClient,
) -> None:
    """Delete stored data: a user, session, trace or old runs.

    The command needs a running collector, and asks you before it deletes. Give one of --user, --session, --trace and
    --before.
    """
    given = {"user": user, "session": session, "trace": trace, "before": before and _day(before)}
    chosen = {name: value for name, value in given.items() if value}
    if len(chosen) != 1:
        raise UserError("give exactly one of --user, --session, --trace and --before")
    found = api.post("/delete", {**chosen, "dry_run": True})
    for name, number in found["rows"].items():
        if number:
            typer.echo(f"{number:>8} {name.replace('_', ' ')}")
    if not any(found["rows"].values()):
        typer.echo("no stored data matches")
        return
    if found["sinks"]:
        message(f"these destinations can keep copies: {', '.join(found['sinks'])}")
    if not yes:
        confirm("Delete?", "nothing is deleted")
    done = api.post("/delete", {**chosen, "by": user_name()})
    message("deleted" if done["complete"] else "deletion has begun; the collector completes it")


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise UserError(f"--before {text}: write a day, such as 2026-01-31") from error
