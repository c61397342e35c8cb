"""``pandaeval jobs``: retries judge jobs in a data directory."""

from __future__ import annotations

import time

import typer

from pandaeval_collector.cli._config import opened_store, with_store_config
from pandaeval_collector.config import Config
from pandaeval_collector.store.clock import stored_times
from pandaeval_collector.store.jobs import listed, retry as make_due

_MOST = 1_000_000

jobs = typer.Typer(help="Retry judge jobs that failed for good.", no_args_is_help=True)


@jobs.command("retry")
@with_store_config
def retry(settings: Config) -> None:
    """Retry judge jobs that failed for good.

    Each job gets the full number of attempts again. Its spans must still be in the store."""
    with opened_store(settings) as connection:
        dead = [job.id for job in listed(connection, "dead", _MOST)]
        kept = stored_times(connection)
        now = time.time() if kept is None else kept.running
        typer.echo(f"{make_due(connection, dead, now)} jobs will run again")
