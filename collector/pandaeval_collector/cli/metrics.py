"""``pandaeval metrics``: what can be scored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._metrics_cost import print_costs
from pandaeval_collector.cli._metrics_page import metrics_page
from pandaeval_collector.cli._output import console, print_json, table
from pandaeval_collector.config import MetricNames
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry


def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, with its full description.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    format_: given.Format = given.TABLE,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="FILE",
            help="Score the traces of this file, and print what CPU time each metric takes; may be repeated.",
        ),
    ] = None,
    page: Annotated[bool, typer.Option("--page", help="Print the reference page of all metrics (Markdown).")] = False,
) -> None:
    """List the metrics: name, level, kind, default threshold, what they need."""
    resolved = resolve_config(config).config
    if cost:
        if name is not None:
            raise UserError(f"--cost tells what each metric takes: leave {name} out")
        return print_costs(cost, resolved, format_ is given.RunFormat.json)
    known = registry(resolved.metrics.modules)
    bands = load("embedded").bands
    if page:
        typer.echo(metrics_page(known, bands), nl=False)
        return
    out = console()
    if name is not None:
        names = MetricNames((metric.level, metric.name) for metric in known.values())
        keys = sorted(names.select(name))
        if not keys:
            raise UserError(f"{name}: {names.unknown(name)}")
        if format_ is given.RunFormat.json:
            return print_json([_facts(known[key], bands) for key in keys])
        for key in keys:
            metric = known[key]
            out.print(f"{key}  ({metric.kind}, version {metric.version})")
            out.print(f"threshold {metric.threshold_for(bands):g}, needs {metric.needs}")
            out.print(f"can be unscored: {', '.join(metric.whys)}\n")
            out.print(_plain(metric.description) + "\n")
        return
    if format_ is given.RunFormat.json:
        return print_json([_facts(each, bands) for each in known.values()])
    rows = ((m.name, m.level, m.kind, f"{m.threshold_for(bands):g}", m.needs, m.question) for m in known.values())
    out.print(table(("name", "level", "kind", "threshold", "needs", "question"), rows, on=out))


def _facts(metric: Metric[Any, Any], bands: Bands | None) -> dict[str, Any]:
    return {
        "key": metric.key,
        "name": metric.name,
        "level": metric.level,
        "kind": metric.kind,
        "version": metric.version,
        "threshold": metric.threshold_for(bands),
        "needs": metric.needs,
        "question": metric.question,
        "unscored": [str(why) for why in metric.whys],
    }


def _plain(doc: str) -> str:
    """Returns a docstring without its markup."""
    return re.sub(r"(?::\w+:)?`{1,2}~?([^`]+)`{1,2}", r"\1", doc).strip()
