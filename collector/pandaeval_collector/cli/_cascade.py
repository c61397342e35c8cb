"""``pandaeval judge cascade``: where a cheap judge may decide, so that the strong one is asked on doubt alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandaeval_collector.cli._align import AlignFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pandaeval_collector.trials.labels.cascading import FoundCascade


def cascade(
    cheap: Annotated[
        Path, typer.Argument(help="Results of the cheap judge as JSON lines: `pandaeval evaluate --format json`.")
    ],
    strong: Annotated[Path | None, typer.Option(help="Results of the strong judge about the same runs.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Or people's verdicts on them, as `pandaeval labels import` takes them.")
    ] = None,
    agree: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="In what share of runs the two are to agree.")
    ] = 0.95,
    write: Annotated[Path | None, typer.Option(help="Keep it in a file for judge.cascade.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    format_: Annotated[
        AlignFormat, typer.Option("--format", help="table, or json: one object a line.")
    ] = AlignFormat.table,
) -> None:
    """Find where a cheap judge agrees with a strong one, or with people, so often that its verdict may stand.

    In nine of ten calibrations the promise holds for runs like these. It says in how many runs the strong judge would
    still be asked, and what that costs.
    """
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.cli._terminal import write_json
    from pandaeval_collector.runs.judging_files import KeptRule, write_rules

    if (strong is None) == (labels is None):
        raise UserError("say what the cheap judge is held against: --strong FILE or --labels FILE")
    found = _found(cheap, strong, labels, agree, config)
    if not found:
        raise UserError("no run has a score of the cheap judge and a verdict to hold it against")
    if write is not None:
        rules = [
            KeptRule(
                metric=each.metric, version=each.version, cheap=each.cheap, strong=each.strong, **asdict(each.rule)
            )
            for each in found
            if each.rule is not None
        ]
        write_rules(rules, write)
    if format_ is AlignFormat.json:
        for each in found:
            write_json(json.dumps(asdict(each)).encode())
    else:
        _print(found, agree)


def _found(
    cheap: Path, strong: Path | None, labels: Path | None, agree: float, config: Path | None
) -> list[FoundCascade]:
    from pandaeval_collector.cli._config import metric_names
    from pandaeval_collector.trials.labels.cascading import against_labels, against_results, from_lines
    from pandaeval_collector.trials.labels.files import read_labels

    first = from_lines(cheap)
    if labels is not None:
        return against_labels(first, read_labels(labels, metric_names(config)).labels, agree, _costs(cheap))
    assert strong is not None
    return against_results(first, from_lines(strong), agree, _costs(cheap), _costs(strong))


def _costs(path: Path) -> Mapping[str, float]:
    """Returns the mean cost of a result in US dollars, by metric."""
    from pandaeval_collector.base.untrusted.given_files import result_lines

    sums: dict[str, tuple[float, int]] = {}
    for result in result_lines(path):
        key = f"{result['level']}.{result['metric']}"
        total, n = sums.get(key, (0.0, 0))
        sums[key] = total + float(result.get("cost_usd") or 0.0), n + 1
    return {key: total / n for key, (total, n) in sums.items()}


def _print(found: list[FoundCascade], agree: float) -> None:
    from rich.text import Text

    from pandaeval_collector.cli._output import console, table

    out = console()
    rows = [
        (
            each.metric,
            each.cheap,
            each.strong or "people",
            each.n,
            "never" if each.rule is None else f"to {each.rule.low:g}, from {each.rule.high:g}",
            "100 %" if each.rule is None else f"{each.rule.asked:.0%}",
            "-" if each.rule is None else f"{each.rule.agreed:.1%}",
        )
        for each in found
    ]
    columns = ("metric", "cheap judge", "held against", "runs", "the cheap one decides", "strong one asked", "agreed")
    out.print(table(columns, rows, on=out, title=f"Cascades that agree in {agree:.0%} of runs at least"))
    for each in found:
        if each.rule is None:
            out.print(Text(f"{each.metric}: {each.n} runs, or the two judges, do not suffice for the promise"))
        elif each.strong_usd:
            then = each.cheap_usd + each.rule.asked * each.strong_usd
            out.print(Text(f"{each.metric}: US$ {1000 * each.strong_usd:.2f} → {1000 * then:.2f} for 1,000 runs"))
    out.print("runs: one of each session, since those of one are alike")
