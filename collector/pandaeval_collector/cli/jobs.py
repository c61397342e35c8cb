"""``pandaeval jobs``: judge jobs in a data directory, also while a collector runs on it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _listings as listings
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import StoreConfig, StoreFolder, opened_store
from pandaeval_collector.cli._listings import Listing
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
    ids: _Ids = None,
    state: Annotated[
        Literal["due", "leased", "done", "dead", "cancelled"] | None,
        typer.Option(help="Only jobs in this state; dead ones were given up."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 50,
    format_: given.Format = "table",
    config: StoreConfig = None,
    store: StoreFolder = None,
) -> None:
    """List jobs, newest first, or those with these ids. With --format json all that is known of each."""
    with opened_store(config, store) as connection:
        found = _named(connection, ids) if ids else stored.listed(connection, state, limit)
    empty = f"no {state} jobs" if state else "no jobs"
    listings.show([_facts(job) for job in found], Listing(_COLUMNS, empty), format_)


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
        found = stored.listed(connection, "dead", 1_000_000) if all_ else _named(connection, ids or ())
        now, wanted = last_running(connection), [job.id for job in found]
        typer.echo(f"{stored.retry(connection, wanted, time.time() if now is None else now)} jobs are due again")


def _named(connection: sqlite3.Connection, starts: Sequence[str]) -> list[Job]:
    """Returns the jobs whose ids begin so. Raises ``UserError`` where none does."""
    found = {start: stored.listed(connection, start=start) for start in starts}
    for start in (start for start in starts if not found[start]):
        raise UserError(f"no job's id begins with {start!r}")
    return [job for jobs in found.values() for job in jobs]
