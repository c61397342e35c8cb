"""``pandaeval schedule``: repeated runs, over the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pandaeval_collector.base.filters import but_times
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import argument
from pandaeval_collector.cli._output import Listing, show
from pandaeval_collector.cli._run_place import ApiClient, with_collector_api
from pandaeval_collector.show.view.texts import moment

_Id = Annotated[str, argument("ID of a schedule.", metavar="ID")]


_SCHEDULES = Listing(
    (
        "id",
        ("cron (UTC)", "cron"),
        ("next", lambda row: "never" if row["next_at"] is None else moment(row["next_at"])),
        ("last run", lambda row: row["last_run"] or ""),
        ("metrics", lambda row: ", ".join(row["run"]["metrics"])),
        ("name", lambda row: row["run"]["name"]),
    ),
    "no schedules",
)

schedule = typer.Typer(help="Score new and changed traces on a schedule.", no_args_is_help=True)


@schedule.command("add")
@given.filtered(but_times())
@given.run_options
@with_collector_api
def add(
    cron: Annotated[str, argument("Minute, hour, day, month and weekday in UTC, such as '0 3 * * *'.")],
    run: given.RunOptions,
    filters: dict[str, Any],
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """Add a schedule.

    Each run scores the traces that were completed or changed since the previous run. The first run covers the time
    since you added the schedule."""
    found = api.post("/schedules", {"cron": cron, "run": run.body(filters)})
    show([found], _SCHEDULES, format_)


@schedule.command("list")
@with_collector_api
def list_(format_: given.Format = "table", *, api: ApiClient) -> None:
    """List schedules."""
    found = api.get("/schedules")["items"]
    show(found, _SCHEDULES, format_)


@schedule.command("remove")
@with_collector_api
def remove(schedule_id: _Id, *, api: ApiClient) -> None:
    """Remove a schedule, but keep its runs."""
    api.delete(f"/schedules/{schedule_id}")
    typer.echo(f"schedule {schedule_id} is removed")
