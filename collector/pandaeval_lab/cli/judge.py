"""``pandaeval judge``: checks judge models and rulings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import config_option, file_argument, file_option, option
from pandaeval_collector.cli._output import RunFormat, console, progress
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.outcome import cure_of
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.rulings_file import read_rulings, rulings_path
from pandaeval_collector.show.view.texts import dollars
from pandaeval_lab.cli._align import prepared, print_alignment, tried, write
from pandaeval_lab.cli._inputs import RunSource, run_source
from pandaeval_lab.cli._judges import JudgeModel, judge_of, settings_of
from pandaeval_lab.judge_check.check_run import CheckRun, forecast
from pandaeval_lab.judge_check.probes import check_result
from pandaeval_lab.judge_check.questions import CheckItem, attacks as known_attacks, canaries, planned
from pandaeval_lab.labels.judge_report import show_reports

_JudgeConfig = Annotated[Path | None, config_option("Configuration file (YAML) with the judge settings.")]

judge = typer.Typer(help="Test a judge model, and align it with human labels.", no_args_is_help=True)


@judge.command("check")
def check(
    model: JudgeModel = None,
    config: _JudgeConfig = None,
    attacks: Annotated[int, option("Number of attacks to try.", min=1, max=len(known_attacks()))] = 40,
    format_: given.Format = "table",
) -> None:
    """Test a judge model on known sessions and attacks.

    The command also shows the cost per session. Exit code 1: the model failed a probe, or answered too few questions.
    Exit code 2: the model cannot be called. If you press Ctrl-C, the command prints its results so far.
    """
    settings = settings_of(config, model)
    name = settings.judge.model or ""
    items = [*canaries(), *planned(attacks)]
    asked: list[CheckRun] = []
    interrupted = False
    try:
        _ask(settings, items, asked, console(stderr=True))
    except KeyboardInterrupt:
        if not asked:
            raise
        interrupted = True
    found = check_result(name, len(items), asked[0].replies, asked[0].spent)
    show_reports([found.report()], format_)
    if interrupted:
        raise KeyboardInterrupt
    if not found.trusted:
        raise typer.Exit(1)


def _ask(settings: Config, items: Sequence[CheckItem], asked: list[CheckRun], out: Console) -> None:
    name = settings.judge.model or ""

    async def ask(show_progress: Callable[[int], None]) -> None:
        async with judge_of(settings, os.environ) as found:
            asked.append(CheckRun(found, name, show_progress, settings.judge.concurrency))
            tokens, usd = forecast(items, (await found.prices()).get(name))
            calls = f"{len(items)} questions: one call each, or two if a reply is invalid"
            out.print(f"{calls}; about {tokens:,} tokens, {dollars(usd)}")
            await asked[0].run(items)

    try:
        with progress("asking", out) as show_progress:
            asyncio.run(ask(lambda done: show_progress(done, len(items))))
    except CallFailedError as error:
        cure = cure_of(error)
        raise UserError(f"{name} cannot be called: {error}" + (f"; {cure}" if cure else "")) from error


@judge.command("align")
@run_source
def align(
    *,
    labels: Annotated[Path, file_argument("Labels as CSV or JSON lines, as for `labels import`.")],
    source: RunSource,
    metric: Annotated[str, option("Judged metric. Required if the labels cover several metrics.")] = "",
    agent: Annotated[str, option("Use only runs of this agent. The ruling applies only to them.")] = "",
    rulings: Annotated[Path | None, file_option("Rulings file (YAML); default: judge.rulings.")] = None,
    model: JudgeModel = None,
    config: _JudgeConfig = None,
    format_: Annotated[RunFormat, option("Output format: table, or one JSON object.", "--format")] = "table",
) -> None:
    """Test rulings on human labels, and keep those that help.

    About half of the labelled runs select a ruling, and the other half must confirm it. The command adopts the ruling
    only if the interval of its gain on the other half is above zero. The rulings file lists every tried ruling with its
    figures.
    """
    settings = settings_of(config, model, {"judge.rulings": None if rulings is None else str(rulings)})
    named = rulings_path(settings)
    entries = read_rulings(named)
    judging, runs = prepared(settings, labels, source, metric, agent)
    found, fates = tried(judging, runs, entries)
    write(named, entries, judging, fates)
    print_alignment(found, fates, judging, named, format_)
