"""``pandaeval runs``: evaluation runs of a running collector or a data directory."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from pandaeval_collector.cli import _output as output, _run_options as given
from pandaeval_collector.cli._options import argument, option
from pandaeval_collector.cli._output import Listing, Row, RunFormat, many, message, print_json, progress
from pandaeval_collector.cli._run_place import ApiClient, with_api_or_store, with_collector_api
from pandaeval_collector.show.view.results import ResultView
from pandaeval_collector.show.view.texts import dollars, interval, moment, number

_RUNS = Listing(
    (
        *("id", "state", "traces", "done"),
        *((name, lambda row, name=name: row[name] or "") for name in ("failed", "calls")),
        ("cost", lambda row: dollars(row["cost_usd"]) if row["calls"] else ""),
        ("started", lambda row: moment(row["created_at"])),
        ("metrics", lambda row: ": ".join(filter(None, (row["name"], ", ".join(row["metrics"]))))),
    ),
    "no runs",
    says_why=True,
)
_RESULTS = Listing(
    (
        ("metric", lambda row: f"{row['level']}.{row['metric']}"),
        ("score", lambda row: number(row["score"])),
        ("outcome", lambda row: ResultView.of(row).word),
        ("trace or session", lambda row: row["session_id"] if row["level"] == "session" else row["trace_id"]),
        ("reason", lambda row: row["reason"][:100]),
    ),
    "no results",
)
_OUTCOMES = Listing(("metric", "scored", "assumed", "unscored"))
_FAILED = Listing((("failed trace", "trace_id"), "why"))
_COMPARED = Listing(
    (
        "metric",
        ("pairs", "both_scored"),
        ("differ", "differing"),
        ("mean (b - a)", lambda row: number(row["difference"] and row["difference"]["mean"], "+.4f")),
        ("95 % interval", lambda row: (at := row["difference"]) and interval(at["low"], at["high"], "+.4f")),
        ("agreement", lambda row: number(row["agreement"], ".3f")),
        (
            "version and judge",
            lambda row: "same" if row["same_series"] else " -> ".join(map(", ".join, row["versions"])),
        ),
    ),
    "the runs have no traces or sessions in common",
)
_CHANGED = Listing(
    (
        ("changed most", "metric"),
        ("trace or session", lambda row: row["trace_id"] or row["session_id"]),
        ("a", lambda row: number(row["before"])),
        ("b", lambda row: number(row["after"])),
    )
)
_Id = Annotated[str, argument("ID of a run.", metavar="ID")]
_LOOK_S = 1.0


runs = typer.Typer(help="Score stored traces again with other settings.", no_args_is_help=True)


@runs.command("start")
@given.filtered()
@given.run_options
@with_collector_api
def start(
    run: given.RunOptions,
    filters: dict[str, Any],
    dry_run: Annotated[bool, option("Only estimate calls, tokens and cost. Call no model.", "--dry-run")] = False,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """Start an evaluation run, and wait for its end.

    If you press Ctrl-C, the command ends, but the run continues."""
    body = run.body(filters)
    if dry_run:
        dry = api.post("/runs", {**body, "dry_run": True})
        return output.show_one(dry, _tell_dry, format_)
    _wait(api, api.post("/runs", body)["id"], format_)


@runs.command("list")
@with_api_or_store
def list_(
    limit: Annotated[int, option("Maximum number of rows, newest first.", min=1)] = 20,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """List runs, newest first."""
    runs = [*api.pages("/runs", limit, limit=min(limit, 500))]
    output.show(runs, _RUNS, format_)


@runs.command("show")
@with_api_or_store
def show(run_id: _Id, format_: given.Format = "table", *, api: ApiClient) -> None:
    """Show a run: progress, results and failed traces."""
    run = api.get(f"/runs/{run_id}")
    output.show_one(run, _tell_run, format_)


@runs.command("watch")
@with_collector_api
def watch(run_id: _Id, format_: given.Format = "table", *, api: ApiClient) -> None:
    """Wait for the end of a run.

    If you press Ctrl-C, the command ends, but the run continues."""
    _wait(api, run_id, format_)


def ended(api: ApiClient, run_id: str) -> Row:
    try:
        with progress(f"run {run_id}") as show_progress:
            while (run := api.get(f"/runs/{run_id}"))["ended_at"] is None:
                show_progress(run["done"] + run["failed"], run["traces"])
                time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        hint = f"continues: `pandaeval runs watch {run_id}` waits for it, `pandaeval runs cancel {run_id}` cancels it"
        message(f"run {run_id} {hint}")
        raise
    return dict(run)


def _wait(api: ApiClient, run_id: str, format_: RunFormat) -> None:
    output.show_one(ended(api, run_id), _tell_run, format_)


@runs.command("cancel")
@with_collector_api
def cancel(run_id: _Id, *, api: ApiClient) -> None:
    """Cancel a run, and keep its results."""
    run = api.post(f"/runs/{run_id}/cancel")
    typer.echo(f"run {run['id']} is cancelled after {run['done']} of {many(run['traces'], 'trace')}")


@runs.command("results")
@with_api_or_store
def results(
    run_id: _Id,
    metric: Annotated[str | None, option("Show only this metric, such as trace.tool_loop.")] = None,
    limit: Annotated[int | None, option("Maximum number of rows.", min=1)] = None,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """Print the results of a run, in order of arrival."""
    found = api.pages(f"/runs/{run_id}/results", limit, metric=metric, limit=500)
    if format_ == "json":
        return print_json(found)
    output.show([*found], _RESULTS)


@runs.command("compare")
@with_api_or_store
def compare(
    a: Annotated[str, argument("ID of a run.")],
    b: Annotated[str, argument("ID of another run, or live.")] = "live",
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """Compare two runs, or a run with the live results."""
    found = api.get("/runs/compare", a=a, b=b)
    output.show_one(found, _tell_comparison, format_)


def _tell_run(run: Row) -> None:
    output.show([run], _RUNS)
    if run["error"]:
        typer.echo(f"the run stopped: {run['error']}")
    if run["planned"] and not run["traces"]:
        asked = ", ".join(f"{name}={value}" for name, value in run["filters"].items())
        typer.echo(f"no stored trace matches ({asked}), so none was scored" if asked else "no trace is stored yet")
    none = {"scored": 0, "assumed": 0, "unscored": 0}
    output.show([{"metric": metric, **none, **counts} for metric, counts in sorted(run["results"].items())], _OUTCOMES)
    if run["failures"]:
        output.show(run["failures"], _FAILED)


def _tell_dry(dry: Row) -> None:
    if not dry["traces"]:
        typer.echo("no stored trace matches")
    counted = "" if dry["counted"] == dry["traces"] else f" (estimated from {dry['counted']} traces)"
    facts = {
        "traces": dry["traces"],
        "sessions": dry["sessions"],
        "calls": f"{dry['calls']}{counted}",
        "tokens in": dry["prompt_tokens"],
        "tokens out": dry["completion_tokens"],
        "answered before": dry["remembered"],
        "cost": "unknown (no price for this model)" if dry["cost_usd"] is None else dollars(dry["cost_usd"]),
    }
    for detail, each in dry["by_detail"].items():
        usd = "price unknown" if each["cost_usd"] is None else dollars(each["cost_usd"])
        facts[f"detail {detail}"] = f"{each['calls']} calls, {usd}"
    for name, value in facts.items():
        typer.echo(f"{name:<16} {value}")
    typer.echo("dry run; omit --dry-run to start the run")


def _tell_comparison(both: Row) -> None:
    output.show(both["metrics"], _COMPARED)
    output.show(
        [{**change, "metric": each["metric"]} for each in both["metrics"] for change in each["changes"]], _CHANGED
    )
    other = "live results" if both["b"] is None else dollars(both["b"]["cost_usd"])
    typer.echo(f"cost: a {dollars(both['a']['cost_usd'])}, b {other}")
