"""``pandaeval runs``: evaluation runs of a running collector, over its API."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import typer

from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._api import TOKEN_ENV, URL, Api, TokenEnv, Url, watched

_Id = Annotated[str, typer.Argument(help="Id of a run.")]
_Format = Annotated[given.Format, typer.Option("--format", help="table, or json: one object a line.")]
_TABLE = given.Format.table
_INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    """Adds the command and what is below it."""
    runs = typer.Typer(help="Score stored traces again: other metrics, another judge.", no_args_is_help=True)
    for name, command in (
        *(("start", start), ("list", list_), ("show", show), ("watch", watch), ("cancel", cancel)),
        *(("retry", retry), ("results", results), ("compare", compare)),
    ):
        runs.command(name)(command)
    app.add_typer(runs, name="runs")


@given.filtered()
def start(
    metrics: given.Metrics,
    filters: dict[str, Any],
    model: given.Model = None,
    sample: given.Sample = 1.0,
    signal_weights: given.Weights = None,
    budget: given.Budget = None,
    emit: given.Emit = False,
    name: given.Name = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take; nobody is asked.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for its end.")] = False,
    format_: _Format = _TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """Start a run, and wait for its end. Ctrl-C ends the waiting, not the run."""
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
        if dry_run:
            dry = api.post("/runs", {**body, "dry_run": True})
            return tables.print_json([dry]) if format_ is given.Format.json else tables.print_dry(dry)
        run = api.post("/runs", body, key=secrets.token_hex(16))
        if detach:
            return tables.print_json([run]) if format_ is given.Format.json else typer.echo(run["id"])
        _wait(api, run["id"], format_)


def watch(run_id: _Id, format_: _Format = _TABLE, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Wait for the end of a run. Ctrl-C ends the waiting, not the run."""
    with Api(url, token_env) as api:
        _wait(api, run_id, format_)


def _wait(api: Api, run_id: str, format_: given.Format) -> None:
    from pandaeval_collector.cli import _run_tables as tables

    try:
        run = watched(api, run_id)
    except KeyboardInterrupt as error:
        typer.echo(
            f"run {run_id} goes on; `pandaeval runs watch {run_id}` waits again, "
            f"`pandaeval runs cancel {run_id}` ends it",
            err=True,
        )
        raise typer.Exit(_INTERRUPTED) from error
    if format_ is given.Format.json:
        return tables.print_json([run])
    tables.print_run(run)


def list_(
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 20,
    format_: _Format = _TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """List runs, newest first."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        runs = [*api.pages("/runs", limit, limit=min(limit, 500))]
    return tables.print_json(runs) if format_ is given.Format.json else tables.print_runs(runs)


def show(run_id: _Id, format_: _Format = _TABLE, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Show a run: how far it is, what it found, what failed."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        run = api.get(f"/runs/{run_id}")
    return tables.print_json([run]) if format_ is given.Format.json else tables.print_run(run)


def cancel(run_id: _Id, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """End a run early; what is done stays."""
    with Api(url, token_env) as api:
        run = api.post(f"/runs/{run_id}/cancel")
    typer.echo(f"run {run['id']} is cancelled after {run['done']} of {run['traces']} traces")


def retry(
    run_id: _Id,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for its end.")] = False,
    format_: _Format = _TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """Go on with a run that ended: with what failed, and what it did not come to."""
    with Api(url, token_env) as api:
        api.post(f"/runs/{run_id}/retry")
        if detach:
            return typer.echo(run_id)
        _wait(api, run_id, format_)


def results(
    run_id: _Id,
    metric: Annotated[str | None, typer.Option(help="Only of this metric, such as trace.tool_loop.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    format_: _Format = _TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """Print the results of a run, in the order in which they came."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        found = api.pages(f"/runs/{run_id}/results", limit, metric=metric, limit=500)
        if format_ is given.Format.json:
            for each in found:
                tables.print_json([each])
            return
        tables.print_results([*found])


def compare(
    a: Annotated[str, typer.Argument(help="Id of a run.")],
    b: Annotated[str, typer.Argument(help="Id of another run, or live.")] = "live",
    format_: _Format = _TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
) -> None:
    """Compare two runs over the same traces, or a run with the live results."""
    from pandaeval_collector.cli import _run_tables as tables

    with Api(url, token_env) as api:
        found = api.get("/runs/compare", a=a, b=b)
    return tables.print_json([found]) if format_ is given.Format.json else tables.print_comparison(found)
