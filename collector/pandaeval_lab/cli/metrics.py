"""``pandaeval metrics``: what can be scored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._output import console, print_json, print_table
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli._names import config_with_trials, names_of


def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, with its full description.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    format_: given.Format = "table",
) -> None:
    """List the metrics: name, level, kind, default threshold, what they need."""
    resolved = config_with_trials(config)
    known = registry(resolved.metrics.modules)
    bands = load("embedded").bands
    out = console()
    if name is not None:
        names = names_of(resolved)
        keys = sorted(names.select(name))
        if not keys:
            raise UserError(f"{name}: {names.unknown(name)}")
        if format_ == "json":
            return print_json([_facts(known[key], bands) for key in keys])
        for key in keys:
            metric = known[key]
            out.print(f"{key}  ({metric.kind}, version {metric.version})")
            out.print(f"threshold {metric.threshold_for(bands):g}, needs {metric.needs}")
            out.print(f"can be unscored: {', '.join(metric.whys)}\n")
            out.print(re.sub(r"(?::\w+:)?`{1,2}~?([^`]+)`{1,2}", r"\1", metric.description).strip() + "\n")
        return
    if format_ == "json":
        return print_json([_facts(each, bands) for each in known.values()])
    rows = ((m.name, m.level, m.kind, f"{m.threshold_for(bands):g}", m.needs, m.question) for m in known.values())
    print_table(("name", "level", "kind", "threshold", "needs", "question"), rows)


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
