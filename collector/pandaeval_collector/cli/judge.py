"""``pandaeval judge``: tries a model as a judge before it is trusted, and guidelines before they are heeded."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._align import align
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._output import console, progress, safe, table
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.config import Config, secret
from pandaeval_collector.jobs.check import CheckRun, JudgeAwayError, Sheet, planned, sheet
from pandaeval_collector.jobs.check.plan import CheckItem
from pandaeval_collector.jobs.check.questions import forecast
from pandaeval_collector.jobs.check.sheet import Probe
from pandaeval_collector.jobs.outcome import cure_of
from pandaeval_collector.jobs.setup import check_installed
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.judge.known import Price
from pandaeval_collector.runs.judges import hasty_judge
from pandaeval_collector.runs.settings import judge as judge_settings

_INTERRUPTED = 130


judge = typer.Typer(help="Try a model as a judge, and bring it nearer to people.", no_args_is_help=True)


@judge.command("check")
def check(
    model: Annotated[
        str | None, typer.Option(help="The model, as litellm spells it; without it that of judge.model.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML): how the judge is reached.")] = None,
    repeat: Annotated[int, typer.Option(min=2, max=50, help="How often each known run is judged.")] = 3,
    attacks: Annotated[int, typer.Option(min=1, max=1000, help="How many attacks are tried, of those there are.")] = 40,
    format_: given.Format = given.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Put known runs, the same runs in other words and order, and attacks to a model, and say whether to trust it.

    Leaves with 1 when a probe fails or not enough could be asked, with 2 when the model cannot be asked at all.
    Ctrl-C prints what there is.
    """
    settings = settings_of(config, model)
    name = settings.judge.model or ""
    items = planned(repeat, attacks)
    asked: list[CheckRun] = []
    interrupted = False
    try:
        _ask(settings, items, asked, console(stderr=True))
    except KeyboardInterrupt:
        if not asked:
            raise
        interrupted = True
    found = sheet(name, len(items), asked[0].replies, asked[0].spent)
    if as_json or format_ is given.RunFormat.json:
        write_json(json.dumps(found.to_dict()))
    else:
        _print(found, console())
    if interrupted:
        raise typer.Exit(_INTERRUPTED)
    if not found.trusted:
        raise typer.Exit(1)


judge.command("align")(align)


def settings_of(path: Path | None, model: str | None) -> Config:
    """Returns the configuration, with a judge that can be asked. Raises ``UserError``."""
    given = resolve_config(path, {"judge.model": model, "judge.models": None if model is None else {}}).config
    if given.judge.model is None:
        raise UserError("name a model with --model, or set judge.model")
    check_installed()
    secret(given.judge.api_key_env, os.environ)
    return given


def _ask(settings: Config, items: Sequence[CheckItem], asked: list[CheckRun], out: Console) -> None:
    """Puts all items to the judge. ``asked`` receives the run at its start, so that it outlives Ctrl-C."""
    configured, name = judge_settings(settings), settings.judge.model or ""
    assert configured is not None

    async def ask(told: Callable[[int], None]) -> None:
        async with hasty_judge(configured, os.environ) as found:
            asked.append(CheckRun(found, name, told, settings.judge.concurrency))
            out.print(_forecast(items, (await found.prices()).get(name)))
            await asked[0].run(items)

    try:
        with progress(out, "asking") as told:
            asyncio.run(ask(lambda done: told(done, len(items))))
    except (JudgeAwayError, CallFailedError) as error:
        cure = cure_of(error.cause if isinstance(error, JudgeAwayError) else error)
        raise UserError(f"{name} cannot be asked ({error})" + (f": {cure}" if cure else "")) from error


def _forecast(items: Sequence[CheckItem], price: Price | None) -> str:
    expected = forecast(items, price)
    cost = "at a price that is not known" if expected.usd is None else f"about US$ {expected.usd:.4f}"
    return (
        f"{expected.calls} questions: as many calls, twice that if no reply holds at first; about "
        f"{expected.tokens:,} tokens, {cost}"
    )


def _print(found: Sheet, out: Console) -> None:
    columns = ("probe", "question", "n", "figure", "95 %", "needed", "")
    rows = [
        (p.name, p.asks, f"{p.n} {p.unit}", p.figure, _interval(p.low, p.high), p.needed, _mark(p))
        for p in found.probes
    ]
    out.print(table(columns, rows, on=out, title=f"{found.model} as a judge"))
    for probe in found.probes:
        if probe.note:
            out.print(Text(f"{probe.name}: {safe(probe.note)}"))
    runs = [
        (name, f"{band[0]:.2f}-{band[1]:.2f}", ", ".join(f"{value:.2f}" for value in said) or "-")
        for name, (band, said) in found.runs.items()
    ]
    out.print(table(("known run", "expected", "verdicts"), runs, on=out))
    cost = f", US$ {found.spent.cost_usd:.4f}" if found.spent.cost_usd else ""
    out.print(f"{found.spent.calls} calls, {found.spent.tokens:,} tokens{cost}")
    out.print(Text(safe(found.last_line()), style="green" if found.trusted else "bold red"))


def _mark(probe: Probe) -> object:
    if probe.passed:
        return Text("pass", style="green")
    return Text("FAIL" if probe.n else "-", style="bold red")


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{round(low, 2) + 0.0:.2f} to {round(high, 2) + 0.0:.2f}"  # no -0.00
