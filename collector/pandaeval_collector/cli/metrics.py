"""``pandaeval metrics``: what can be scored."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("metrics")(metrics)


def metrics(name: Annotated[str | None, typer.Argument(help="One metric, with its full description.")] = None) -> None:
    """List the metrics: name, level, kind, default threshold, what they need."""
    from rich.table import Table

    from pandaeval_collector.cli._tables import console
    from pandaeval_collector.config import MetricNames
    from pandaeval_collector.embedding.load import load
    from pandaeval_collector.errors import UserError
    from pandaeval_collector.metric import registry

    known = registry()
    bands = load("embedded").bands
    out = console()
    if name is not None:
        names = MetricNames((metric.level, metric.name) for metric in known.values())
        keys = sorted(names.select(name))
        if not keys:
            raise UserError(f"{name}: {names.unknown(name)}")
        for key in keys:
            metric = known[key]
            module = __import__(metric.evaluate.__module__, fromlist=["__doc__"])
            out.print(f"[bold]{key}[/bold]  ({metric.kind}, version {metric.version})", markup=True)
            out.print(f"threshold {metric.threshold_for(bands):g}, needs {metric.needs}\n", markup=False)
            out.print((module.__doc__ or "").strip() + "\n", markup=False)
        return
    table = Table(header_style="bold")
    for column in ("name", "level", "kind", "threshold", "needs", "question"):
        table.add_column(column, overflow="fold")
    for metric in known.values():
        table.add_row(
            metric.name,
            metric.level,
            metric.kind,
            f"{metric.threshold_for(bands):g}",
            metric.needs,
            metric.question,
        )
    out.print(table)
