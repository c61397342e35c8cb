"""``pandaeval jobs``: judge jobs in a data directory, also while a collector runs on it."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _listings as listings
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import StoreConfig, StoreFolder, opened_store
from pandaeval_collector.cli._listings import Listing
from pandaeval_collector.cli._output import print_json, safe
from pandaeval_collector.show.view.texts import moment
from pandaeval_collector.store import Job
from pandaeval_collector.store import jobs as stored
from pandaeval_collector.store.clock import last_running

_COLUMNS = (
    *("id", "state", "metric", "trace", "attempts", "why"),
    ("last error", lambda row: row["last_error"][:100]),
)
_Ids = Annotated[list[str] | None, typer.Argument(help="Beginnings of job ids.")]


jobs = typer.Typer(help="Look at judge jobs, and retry dead ones.", no_args_is_help=True)


@jobs.command("list")
def list_(
    state: Annotated[
        Literal["due", "leased", "done", "dead", "cancelled"] | None,
        typer.Option(help="Only jobs in this state; dead ones were given up."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 50,
    format_: given.Format = "table",
    config: StoreConfig = None,
    store: StoreFolder = None,
) -> None:
    """List jobs, newest first."""
    with opened_store(config, store) as connection:
        found = stored.listed(connection, state, limit)
    empty = f"no {state} jobs" if state else "no jobs"
    listings.show([_facts(job) for job in found], Listing(_COLUMNS, empty), format_)


@jobs.command("show")
def show(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Beginning of a job's id.")],
    format_: given.Format = "table",
    config: StoreConfig = None,
    store: StoreFolder = None,
) -> None:
    """Show one job in full."""
    with opened_store(config, store) as connection:
        found = [_facts(job) for job in _one_or_more(stored.listed(connection, start=id_), id_)]
    if format_ == "json":
        return print_json(found)
    for facts in found:
        for name, value in facts.items():
            typer.echo(f"{name.replace('_', ' '):<10}  {safe(str(value))}")


def _facts(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "state": job.state,
        "metric": job.metric,
        "trace": job.trace_id.hex(),
        "due": moment(job.due_at * 1000),
        "attempts": job.attempts,
        "crashes": job.crashes,
        "why": job.why,
        "last_error": job.error,
    }


@jobs.command("retry")
def retry(
    ids: _Ids = None,
    all_: Annotated[bool, typer.Option("--all", help="All dead jobs.")] = False,
    config: StoreConfig = None,
    store: StoreFolder = None,
) -> None:
    """Make dead jobs due again, with all their attempts. Their traces must still be in the store (late.window)."""
    if bool(ids) == all_:
        raise UserError("name the jobs to retry, or give --all")
    with opened_store(config, store) as connection:
        if all_:
            wanted = [job.id for job in stored.listed(connection, "dead", 1_000_000)]
        else:
            wanted = [
                job.id for start in ids or [] for job in _one_or_more(stored.listed(connection, start=start), start)
            ]
        now = last_running(connection)
        typer.echo(f"{stored.retry(connection, wanted, time.time() if now is None else now)} jobs are due again")


def _one_or_more(found: list[Job], start: str) -> list[Job]:
    if not found:
        raise UserError(f"no job's id begins with {start!r}")
    return found
