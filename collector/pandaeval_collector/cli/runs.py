"""``pandaeval runs``: evaluation runs of a running collector, over its API, or in a data directory."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._api import TOKEN_ENV, URL, ApiClient, TokenEnv, Url, watched
from pandaeval_collector.cli._run_place import Configured, LocalApi, Place, WorkedOn, placed, working

_Id = Annotated[str, typer.Argument(help="Id of a run.")]
_FROM = (
    "With --store: about the traces of a file or a trace store, as `pandaeval evaluate` takes them, which are kept in "
    "that folder. May be given several times."
)
_MOST_NAME = 200
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
    from_: Annotated[list[str] | None, typer.Option("--from", metavar="SOURCE", help=_FROM)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take; nobody is asked.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for its end.")] = False,
    format_: given.Format = given.TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
    store: WorkedOn = None,
    config: Configured = None,
) -> None:
    """Start a run, and wait for its end. Ctrl-C ends the waiting, not the run; with --store it ends the run too."""
    from pandaeval_collector.cli import _run_tables as tables

    _check(store, emit, detach, from_)
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
    with working(url, token_env, store, config, new=bool(from_)) as api:
        if from_ and isinstance(api, LocalApi):
            body["filters"]["attribute"] = [*body["filters"].get("attribute", ()), api.take_in(from_)]
            body["name"] = name or ", ".join(from_)[:_MOST_NAME]
        if dry_run:
            dry = api.post("/runs", {**body, "dry_run": True})
            return tables.print_json([dry]) if format_ is given.RunFormat.json else tables.print_dry(dry)
        run = api.post("/runs", body, key=secrets.token_hex(16))
        if detach:
            return tables.print_json([run]) if format_ is given.RunFormat.json else typer.echo(run["id"])
        _wait(api, run["id"], format_, store)


def _check(store: Path | None, emit: bool, detach: bool, sources: list[str] | None = None) -> None:
    if sources and store is None:
        raise UserError(
            "--from keeps traces and results in a folder of their own: name it with --store, a new one first"
        )
    if store is not None and emit:
        raise UserError("--emit: results leave by a running collector alone; leave out --emit, or --store")
    if store is not None and detach:
        raise UserError("--detach: with --store this command does the run, and nobody would go on with it")


def watch(run_id: _Id, format_: given.Format = given.TABLE, url: Url = URL, token_env: TokenEnv = TOKEN_ENV) -> None:
    """Wait for the end of a run. Ctrl-C ends the waiting, not the run."""
    with working(url, token_env, None, None) as api:
        _wait(api, run_id, format_)


def _wait(api: ApiClient, run_id: str, format_: given.RunFormat, store: Path | None = None) -> None:
    from pandaeval_collector.cli import _run_tables as tables

    try:
        if isinstance(api, LocalApi):
            api.begin(run_id)
        run = watched(api, run_id)
    except KeyboardInterrupt as error:
        if isinstance(api, LocalApi):
            api.post(f"/runs/{run_id}/cancel")
            told = f"is cancelled; `pandaeval runs retry {run_id} --store {store}` goes on with it"
        else:
            told = f"goes on; `pandaeval runs watch {run_id}` waits again, `pandaeval runs cancel {run_id}` ends it"
        typer.echo(f"run {run_id} {told}", err=True)
        raise typer.Exit(_INTERRUPTED) from error
    if format_ is given.RunFormat.json:
        return tables.print_json([run])
    tables.print_run(run)


@placed
def list_(
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 20,
    format_: given.Format = given.TABLE,
    *,
    place: Place,
) -> None:
    """List runs, newest first."""
    from pandaeval_collector.cli import _run_tables as tables

    with place.looking() as api:
        runs = [*api.pages("/runs", limit, limit=min(limit, 500))]
    return tables.print_json(runs) if format_ is given.RunFormat.json else tables.print_runs(runs)


@placed
def show(run_id: _Id, format_: given.Format = given.TABLE, *, place: Place) -> None:
    """Show a run: how far it is, what it found, what failed."""
    from pandaeval_collector.cli import _run_tables as tables

    with place.looking() as api:
        run = api.get(f"/runs/{run_id}")
    return tables.print_json([run]) if format_ is given.RunFormat.json else tables.print_run(run)


def cancel(
    run_id: _Id, url: Url = URL, token_env: TokenEnv = TOKEN_ENV, store: WorkedOn = None, config: Configured = None
) -> None:
    """End a run early; what is done stays."""
    with working(url, token_env, store, config) as api:
        run = api.post(f"/runs/{run_id}/cancel")
    typer.echo(f"run {run['id']} is cancelled after {run['done']} of {run['traces']} traces")


def retry(
    run_id: _Id,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for its end.")] = False,
    format_: given.Format = given.TABLE,
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
    store: WorkedOn = None,
    config: Configured = None,
) -> None:
    """Go on with a run that ended: with what failed, and what it did not come to. With --store also with one that was
    broken off."""
    _check(store, False, detach)
    with working(url, token_env, store, config) as api:
        if store is None or api.get(f"/runs/{run_id}")["ended_at"] is not None:
            api.post(f"/runs/{run_id}/retry")
        if detach:
            return typer.echo(run_id)
        _wait(api, run_id, format_, store)


@placed
def results(
    run_id: _Id,
    metric: Annotated[str | None, typer.Option(help="Only of this metric, such as trace.tool_loop.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    format_: given.Format = given.TABLE,
    *,
    place: Place,
) -> None:
    """Print the results of a run, in the order in which they came."""
    from pandaeval_collector.cli import _run_tables as tables

    with place.looking() as api:
        found = api.pages(f"/runs/{run_id}/results", limit, metric=metric, limit=500)
        if format_ is given.RunFormat.json:
            for each in found:
                tables.print_json([each])
            return
        tables.print_results([*found])


@placed
def compare(
    a: Annotated[str, typer.Argument(help="Id of a run.")],
    b: Annotated[str, typer.Argument(help="Id of another run, or live.")] = "live",
    format_: given.Format = given.TABLE,
    *,
    place: Place,
) -> None:
    """Compare two runs over the same traces, or a run with the live results."""
    from pandaeval_collector.cli import _run_tables as tables

    with place.looking() as api:
        found = api.get("/runs/compare", a=a, b=b)
    return tables.print_json([found]) if format_ is given.RunFormat.json else tables.print_comparison(found)
