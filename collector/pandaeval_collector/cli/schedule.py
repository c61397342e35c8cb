"""``pandaeval schedule``: runs again and again, over a collector's API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pandaeval_collector.base.filters import but_times
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._api import TOKEN_ENV, URL, Api, TokenEnv, Url

_Id = Annotated[str, typer.Argument(help="Id of a schedule.")]


def register(app: typer.Typer) -> None:
    """Adds the command and what is below it."""
    schedule = typer.Typer(
        help="Run metrics again and again over what is new or changed since the last run.", no_args_is_help=True
    )
    for name, command in (("add", add), ("list", list_), ("remove", remove), ("pause", pause), ("resume", resume)):
        schedule.command(name)(command)
    app.add_typer(schedule, name="schedule")


@given.filtered(but_times())
def add(
    cron: Annotated[str, typer.Argument(help="Minute hour day month weekday, in UTC: '0 3 * * *'.")],
    metrics: given.Metrics,
    filters: dict[str, Any],
    model: given.Model = None,
    sample: given.Sample = 1.0,
    signal_weights: given.Weights = None,
    budget: given.Budget = None,
    emit: given.Emit = False,
    name: given.Name = "",
    format_: given.Format = given.TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """Add a schedule. Its first run is about what is decided from now on."""
    from pandaeval_collector.cli import _run_tables as tables

    body = given.request(
        metrics=metrics,
        model=model,
        sample=sample,
        signal_weights=signal_weights,
        emit=emit,
        name=name,
        filters=filters,
        budget=budget,
    )
    with Api(url, token_env) as api:
        found = api.post("/schedules", {"cron": cron, "run": body})
    return tables.print_json([found]) if format_ is given.RunFormat.json else tables.print_schedules([found])


def list_(format_: given.Format = given.TABLE, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """List schedules."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        found = api.get("/schedules")["items"]
    return tables.print_json(found) if format_ is given.RunFormat.json else tables.print_schedules(found)


def remove(schedule_id: _Id, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Remove a schedule; its runs stay."""
    with Api(url, token_env) as api:
        api.delete(f"/schedules/{schedule_id}")
    typer.echo(f"schedule {schedule_id} is removed")


def pause(schedule_id: _Id, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Have a schedule rest."""
    with Api(url, token_env) as api:
        api.post(f"/schedules/{schedule_id}/pause")
    typer.echo(f"schedule {schedule_id} is paused; `pandaeval schedule resume {schedule_id}` goes on")


def resume(schedule_id: _Id, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Have a schedule go on; what came meanwhile is in its next run."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        tables.print_schedules([api.post(f"/schedules/{schedule_id}/resume")])
