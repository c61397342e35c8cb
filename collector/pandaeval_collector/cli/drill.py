"""``pandaeval drill``: plants known faults into good runs, and tells which of them the metrics notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._drill_judge import asked
from pandaeval_collector.cli._drill_tables import baseline_of, print_drill, write_drill_junit
from pandaeval_collector.cli._output import OutputFile, console, progress
from pandaeval_collector.cli._run_options import RunSource, run_source
from pandaeval_collector.cli._tables import print_problems
from pandaeval_collector.cli.judge import settings_of
from pandaeval_collector.cli.passk import write_lines
from pandaeval_collector.drill.drill import Drill, chosen_faults
from pandaeval_collector.drill.fault import Fault, faults
from pandaeval_collector.drill.tally import drops
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import close_rules, evaluator
from pandaeval_collector.runs.trace_files import TraceFiles
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.show.report.drill import page


class DrillFormat(StrEnum):
    """The formats in which a drill's figures are written."""

    table = "table"
    json = "json"
    junit = "junit"
    html = "html"


@run_source
def drill(
    source: RunSource,
    n: Annotated[int, typer.Option("--n", min=1, help="Copies of each fault.")] = 200,
    faults: Annotated[
        str | None, typer.Option(help="Only these faults or families of faults, comma-separated; if not given, all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another number chooses other runs and values.")] = 0,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Put some copies and their originals to a judge, too: the price is told first, --budget is kept.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="The judge, as litellm spells it; without it that of judge.model.")
    ] = None,
    judged: Annotated[int, typer.Option(min=1, help="Copies that are put to the judge, of all faults in turn.")] = 20,
    budget: Annotated[float, typer.Option(min=0.0, help="US dollars that judging may cost at most.")] = 1.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --judge: tell the price, and do not ask the judge.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(help="JSON of an earlier drill: leave with 1 where a metric notices credibly less than in it."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML).")] = None,
    format_: Annotated[
        DrillFormat,
        typer.Option("--format", help="table is for people, json for a later --baseline, junit for CI, html a page."),
    ] = DrillFormat.table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")
    ] = None,
) -> None:
    """Plant known faults into runs that look good, and tell how many of them the metrics notice.

    No labels and no model are needed; with --judge, a model is tried on these runs, too. Leaves with 1 when a metric
    notices less than in the baseline, with 2 when the input cannot be used.
    """
    before = None if baseline is None else baseline_of(baseline)
    chosen = _chosen(faults)
    settings = settings_of(config, model) if judge else resolve_config(config).config
    scorer = evaluator(settings)
    alone = Evaluator(scorer.embedder, replace(scorer.settings, judge=None))
    with (
        TraceFiles(close_rules(settings)) as files,
        progress(console(stderr=True), "drilling") as on_done,
        OutputFile(output) as target,
    ):
        files.add_all(source.requests())
        run = Drill(files, lambda some, where: replay(some, alone, where=where), chosen, n, seed, keep=judged * judge)
        tally = run.run(on_done)
        if judge:
            sheet = asked(run, settings, scorer, judged, budget, dry_run)
            tally.judge = None if sheet is None else sheet.to_dict()
        print_problems(console(stderr=True), files.read.problems, files.read.bad)
        worse = [] if before is None else drops(before, tally)
        if format_ is DrillFormat.json:
            write_lines([tally.to_dict()], target)
        elif format_ is DrillFormat.html:
            target.write(page(tally.to_dict(), str(source)))
        elif format_ is DrillFormat.junit:
            write_drill_junit(tally.to_dict(), worse, target)
        else:
            print_drill(tally.to_dict(), console(file=target))
    for drop in worse:
        typer.echo(f"failed: {drop.told}", err=True)
    if worse:
        raise typer.Exit(1)


def _chosen(names: str | None) -> Mapping[str, Fault]:
    try:
        return chosen_faults(None if names is None else names.replace(" ", "").split(","), faults())
    except ValueError as error:
        raise UserError(f"--faults {names}: {error}") from error
