"""``pandaeval judge``: tries a model as a judge before it is trusted, and rulings before they are heeded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import config_option, file_argument, file_option
from pandaeval_collector.cli._output import console, progress
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.outcome import cure_of
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.rulings_file import read_rulings, rulings_path
from pandaeval_collector.show.view.texts import dollars
from pandaeval_lab.cli._align import prepared, print_alignment, tried, write
from pandaeval_lab.cli._inputs import RunSource, run_source
from pandaeval_lab.cli._judges import judge_of, settings_of
from pandaeval_lab.cli._names import config_with_trials
from pandaeval_lab.judge_check.check_run import CheckRun, forecast
from pandaeval_lab.judge_check.probes import check_result
from pandaeval_lab.judge_check.questions import CheckItem, canaries, planned
from pandaeval_lab.labels.judge_report import show_reports

_INTERRUPTED = 130


judge = typer.Typer(help="Try a model as a judge, and bring it nearer to people.", no_args_is_help=True)


@judge.command("check")
def check(
    model: Annotated[
        str | None, typer.Option(help="The model, as litellm spells it; without it that of judge.model.")
    ] = None,
    config: Annotated[Path | None, config_option("Configuration file (YAML): how the judge is reached.")] = None,
    attacks: Annotated[int, typer.Option(min=1, max=1000, help="How many attacks are tried, of those there are.")] = 40,
    format_: given.Format = "table",
) -> None:
    """Test a model as a judge on known sessions, varied runs and attacks, and show the cost of a session.

    Leaves with 1 when a probe fails or not enough could be asked, with 2 when the model cannot be asked at all.
    Ctrl-C prints what there is.
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
        raise typer.Exit(_INTERRUPTED)
    if not found.trusted:
        raise typer.Exit(1)


def _ask(settings: Config, items: Sequence[CheckItem], asked: list[CheckRun], out: Console) -> None:
    """Puts all items to the judge. ``asked`` receives the run at its start, so that it outlives Ctrl-C."""
    name = settings.judge.model or ""

    async def ask(told: Callable[[int], None]) -> None:
        async with judge_of(settings, os.environ) as found:
            asked.append(CheckRun(found, name, told, settings.judge.concurrency))
            tokens, usd = forecast(items, (await found.prices()).get(name))
            calls = f"{len(items)} questions: as many calls, twice that if no reply holds at first"
            out.print(f"{calls}; about {tokens:,} tokens, {dollars(usd)}")
            await asked[0].run(items)

    try:
        with progress(out, "asking") as told:
            asyncio.run(ask(lambda done: told(done, len(items))))
    except CallFailedError as error:
        cure = cure_of(error)
        raise UserError(f"{name} cannot be asked ({error})" + (f": {cure}" if cure else "")) from error


@judge.command("align")
@run_source
def align(
    *,
    labels: Annotated[
        Path, file_argument("People's verdicts, CSV or JSON lines, as `pandaeval labels import` takes them.")
    ],
    source: RunSource,
    metric: Annotated[str, typer.Option(help="The judged metric; needed where the labels are about several.")] = "",
    agent: Annotated[str, typer.Option(help="Only this agent's runs; the ruling is for it alone.")] = "",
    rulings: Annotated[Path | None, file_option("File of rulings (YAML). Overrides judge.rulings.")] = None,
    propose: Annotated[int, typer.Option(min=0, max=5, help="So many are proposed by the judge's model.")] = 3,
    usd: Annotated[float | None, typer.Option(min=0.0, help="What all of it may cost, in US dollars.")] = None,
    drill: Annotated[
        int, typer.Option(min=0, help="Copies of each fault by which the drill tells that it is no worse.")
    ] = 1,
    model: Annotated[str | None, typer.Option(help="The judge's model; if not given, that of judge.model.")] = None,
    config: Annotated[Path | None, config_option("Configuration file (YAML): how the judge is reached.")] = None,
    format_: Annotated[RunFormat, typer.Option("--format", help="table, or json: one object.")] = "table",
) -> None:
    """Test rulings for the judge on people's labels, and adopt a proven one.

    Half of the labels choose it, the other half prove it: the interval of its gain there lies above zero, and the drill
    is not worse. All that was tried is kept in the file with its figures.
    """
    more: dict[str, Any] = {"judge.model": model, "judge.models": None if model is None else {}}
    settings = config_with_trials(config, more | {"judge.rulings": None if rulings is None else str(rulings)})
    named = rulings_path(settings)
    if settings.judge.model is None:
        raise UserError("name a model with --model, or set judge.model")
    entries = read_rulings(named)
    judging, runs = prepared(settings, labels, source, metric, agent, usd)
    found, drilled = tried(judging, runs, entries, propose, drill)
    write(named, entries, judging, found, drilled)
    print_alignment(found, drilled, judging, named, format_)
