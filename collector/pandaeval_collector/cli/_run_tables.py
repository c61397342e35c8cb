"""Runs, schedules and comparisons as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import typer

Row = dict[str, Any]


def print_json(items: Sequence[Row]) -> None:
    """Prints each item as a line of JSON."""
    for item in items:
        typer.echo(json.dumps(item, ensure_ascii=False))


def print_runs(runs: Sequence[Row]) -> None:
    """Prints a table with a line for each run."""
    _print(
        ("id", "state", "traces", "done", "failed", "calls", "USD", "started", "metrics", "name"),
        [
            (
                run["id"],
                run["state"],
                run["traces"],
                run["done"],
                run["failed"],
                run["calls"],
                f"{run['cost_usd']:.4f}",
                _time(run["created_at"]),
                ", ".join(run["metrics"]),
                run["name"],
            )
            for run in runs
        ],
        "no runs",
    )


def print_run(run: Row) -> None:
    """Prints one run: its line, its error, its results by metric, and the traces that failed."""
    print_runs([run])
    if run["error"]:
        typer.echo(f"it could not go on: {run['error']}")
    if run["planned"] and not run["traces"]:
        typer.echo(nothing_found(run["filters"]))
    rows = [
        (metric, *(counts.get(outcome, 0) for outcome in ("scored", "assumed", "unscored")))
        for metric, counts in sorted(run["results"].items())
    ]
    if rows:
        _print(("metric", "scored", "assumed", "unscored"), rows, "")
    if run["failures"]:
        _print(("failed trace", "why"), [(each["trace_id"], each["why"]) for each in run["failures"]], "")
        typer.echo(f"`pandaeval runs retry {run['id']}` tries these again")


def nothing_found(filters: Row) -> str:
    """Returns the sentence that says why a run has nothing to do."""
    asked = ", ".join(f"{name}={value}" for name, value in filters.items())
    return f"no stored trace is like that ({asked}): nothing was scored" if asked else "no trace is stored yet"


def print_dry(dry: Row) -> None:
    """Prints what a run would take: traces, calls, tokens and cost."""
    if not dry["traces"]:
        typer.echo("no stored trace is like that")
    cost = "unknown (no price for this model)" if dry["cost_usd"] is None else f"{dry['cost_usd']:.4f}"
    counted = "" if dry["counted"] == dry["traces"] else f" (from {dry['counted']} of the traces)"
    facts = {
        "traces": dry["traces"],
        "sessions": dry["sessions"],
        "calls": f"{dry['calls']}{counted}",
        "tokens in": dry["prompt_tokens"],
        "tokens out": dry["completion_tokens"],
        "answered before": dry["remembered"],
        "US dollars": cost,
    }
    for name, value in facts.items():
        typer.echo(f"{name:<16} {value}")
    typer.echo("nothing was run: leave --dry-run out to run it")


def print_results(results: Sequence[Row]) -> None:
    """Prints a table with a line for each result."""
    _print(
        ("metric", "score", "label", "trace or session", "reason"),
        [
            (
                f"{each['level']}.{each['metric']}",
                "" if each["score"] is None else f"{each['score']:.3f}",
                each["label"] or each["why"],
                each["session_id"] if each["level"] == "session" else each["trace_id"],
                each["reason"][:100],
            )
            for each in results
        ],
        "no results",
    )


def print_comparison(found: Row) -> None:
    """Prints how two runs differ, by metric, and the units that changed most."""
    rows = []
    for each in found["metrics"]:
        difference = each["difference"] or {}
        known = difference.get("low") is not None
        interval = f"{difference['low']:+.4f} .. {difference['high']:+.4f}" if known else ""
        mean = f"{difference['mean']:+.4f}" if difference else ""
        agreement = "" if each["agreement"] is None else f"{each['agreement']:.3f}"
        series = (
            "same" if each["same_series"] else f"{', '.join(each['versions'][0])} -> {', '.join(each['versions'][1])}"
        )
        rows.append((each["metric"], each["both_scored"], each["differing"], mean, interval, agreement, series))
    columns = ("metric", "pairs", "differ", "mean (b - a)", "95 % interval", "agreement", "version and judge")
    _print(columns, rows, "the two have no units in common")
    changes = [
        (
            each["metric"],
            change["trace_id"] or change["session_id"],
            f"{change['before']:.3f}",
            f"{change['after']:.3f}",
        )
        for each in found["metrics"]
        for change in each["changes"]
    ]
    if changes:
        _print(("changed most", "trace or session", "a", "b"), changes, "")
    other = "live results" if found["b"] is None else f"${found['b']['cost_usd']:.4f}"
    typer.echo(f"cost: a ${found['a']['cost_usd']:.4f}, b {other}")


def print_schedules(schedules: Sequence[Row]) -> None:
    """Prints a table with a line for each schedule."""
    _print(
        ("id", "cron (UTC)", "next", "last run", "metrics", "name"),
        [
            (
                each["id"],
                each["cron"],
                "paused" if each["next_at"] is None else _time(each["next_at"]),
                each["last_run"] or "",
                ", ".join(each["run"]["metrics"]),
                each["run"]["name"],
            )
            for each in schedules
        ],
        "no schedules",
    )


def _print(columns: Sequence[str], rows: Sequence[Sequence[object]], otherwise: str) -> None:
    from pandaeval_collector.cli._output import console, table

    if not rows:
        typer.echo(otherwise)
        return
    out = console()
    out.print(table(columns, rows, on=out))


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
