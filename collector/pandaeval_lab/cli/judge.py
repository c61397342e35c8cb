"""``pandaeval judge``: tries a model as a judge before it is trusted, and guidelines before they are heeded."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._output import console, print_table, progress, safe, table
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.config import Config, secret
from pandaeval_collector.jobs.anew import Forgetful
from pandaeval_collector.jobs.outcome import cure_of
from pandaeval_collector.jobs.setup import check_installed
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.judges import RunJudge, hasty_judge
from pandaeval_collector.runs.judging_files import WrittenGuideline, read_guidelines, withdraw_last, write_guidelines
from pandaeval_collector.runs.settings import judge as judge_settings
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.alignment.align import (
    Alignment,
    JudgedUnit,
    LabelledRun,
    TriedGuideline,
    VerdictChange,
    disagreements,
    plain,
    proposing_rubric,
)
from pandaeval_lab.alignment.align import align as align_judge
from pandaeval_lab.alignment.judging import FileJudging, judged
from pandaeval_lab.cli._names import config_with_trials, metric_names
from pandaeval_lab.cli._run_source import RunSource, run_source
from pandaeval_lab.drill.drill import Drill, chosen_faults
from pandaeval_lab.drill.fault import faults
from pandaeval_lab.judge_check import METRIC, CheckRun, JudgeAwayError, Sheet, planned, sheet
from pandaeval_lab.judge_check.plan import CheckItem
from pandaeval_lab.judge_check.questions import forecast
from pandaeval_lab.labels.calibration import word_of_most
from pandaeval_lab.labels.files import read_labels
from pandaeval_lab.replay.trace_files import TraceFiles

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
    format_: given.Format = "table",
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
    if as_json or format_ == "json":
        write_json(json.dumps(found.to_dict()))
    else:
        _print(found, console())
    if interrupted:
        raise typer.Exit(_INTERRUPTED)
    if not found.trusted:
        raise typer.Exit(1)


def settings_of(path: Path | None, model: str | None) -> Config:
    """Returns the configuration, with a judge that can be asked. Raises ``UserError``."""
    given = config_with_trials(path, {"judge.model": model, "judge.models": None if model is None else {}})
    if given.judge.model is None:
        raise UserError("name a model with --model, or set judge.model")
    check_installed()
    secret(given.judge.api_key_env, os.environ)
    return given


def _judge_of(settings: Config, environ: Mapping[str, str]) -> AbstractAsyncContextManager[RunJudge]:
    configured = judge_settings(settings)
    assert configured is not None, "settings_of saw to it"
    return hasty_judge(configured, environ)


def _ask(settings: Config, items: Sequence[CheckItem], asked: list[CheckRun], out: Console) -> None:
    """Puts all items to the judge. ``asked`` receives the run at its start, so that it outlives Ctrl-C."""
    name = settings.judge.model or ""

    async def ask(told: Callable[[int], None]) -> None:
        async with _judge_of(settings, os.environ) as found:
            asked.append(CheckRun(found, name, told, settings.judge.concurrency))
            expected = forecast(items, (await found.prices()).get(name))
            cost = "at a price that is not known" if expected.usd is None else f"about US$ {expected.usd:.4f}"
            out.print(
                f"{expected.calls} questions: as many calls, twice that if no reply holds at first; about "
                f"{expected.tokens:,} tokens, {cost}"
            )
            await asked[0].run(items)

    try:
        with progress(out, "asking") as told:
            asyncio.run(ask(lambda done: told(done, len(items))))
    except (JudgeAwayError, CallFailedError) as error:
        cure = cure_of(error.cause if isinstance(error, JudgeAwayError) else error)
        raise UserError(f"{name} cannot be asked ({error})" + (f": {cure}" if cure else "")) from error


def _print(found: Sheet, out: Console) -> None:
    columns = ("probe", "question", "n", "figure", "95 %", "needed", "")
    rows = [
        (
            p.name,
            p.asks,
            f"{p.n} {p.unit}",
            p.figure,
            "" if math.isnan(p.low) else f"{round(p.low, 2) + 0.0:.2f} to {round(p.high, 2) + 0.0:.2f}",
            p.needed,
            Text("pass", style="green") if p.passed else Text("FAIL" if p.n else "-", style="bold red"),
        )
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


_DRILLED = ("claim", "value")
"""Families of faults that a judge can be expected to see."""


@judge.command("align")
@run_source
def align(
    *,
    labels: Annotated[
        Path | None,
        typer.Argument(help="People's verdicts, CSV or JSON lines, as `pandaeval labels import` takes them."),
    ] = None,
    source: RunSource,
    metric: Annotated[str, typer.Option(help="The judged metric; needed where the labels are about several.")] = "",
    agent: Annotated[str, typer.Option(help="Only this agent's runs; the guideline is for it alone.")] = "",
    guidelines: Annotated[
        Path | None, typer.Option(help="The file of guidelines (YAML); if not given, that of judge.guidelines.")
    ] = None,
    propose: Annotated[int, typer.Option(min=0, max=5, help="So many are proposed by the judge's model.")] = 3,
    usd: Annotated[float | None, typer.Option(min=0.0, help="What all of it may cost, in US dollars.")] = None,
    drill: Annotated[
        int, typer.Option(min=0, help="Copies of each fault by which the drill tells that it is no worse.")
    ] = 1,
    model: Annotated[str | None, typer.Option(help="The judge's model; if not given, that of judge.model.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML): how the judge is reached.")] = None,
    format_: Annotated[RunFormat, typer.Option("--format", help="table, or json: one object.")] = "table",
    undo: Annotated[bool, typer.Option("--undo", help="Take back the guideline that was adopted last.")] = False,
) -> None:
    """Try guidelines for the judge against people's labels, and adopt the one that is proven to help.

    Half of the labels choose it, the other half prove it: the interval of its gain there lies above zero, and neither
    the judge check nor the drill is worse. All that was tried is kept in the file with its figures.
    """
    settings = config_with_trials(config, {"judge.model": model, "judge.models": None if model is None else {}})
    named = guidelines or (None if settings.judge.guidelines is None else Path(settings.judge.guidelines))
    if named is None:
        raise UserError("name the file of guidelines with --guidelines, or set judge.guidelines")
    if undo:
        entries, taken = withdraw_last(read_guidelines(named))
        if taken is None:
            raise UserError(f"{named}: no guideline in it is adopted")
        write_guidelines(entries, named)
        return typer.echo(f"withdrawn for {taken.metric}: {taken.text}")
    if labels is None:
        raise UserError("name a file of labels, and the runs that they are about")
    if settings.judge.model is None:
        raise UserError("name a model with --model, or set judge.model")
    entries = read_guidelines(named) if named.exists() else []
    judging, runs = _prepared(settings, named, labels, source, metric, agent, usd)
    found, guards = _tried(judging, runs, entries, propose, drill)
    _write(named, entries, judging, found, guards)
    _print_alignment(found, guards, judging, named, format_)


def _prepared(
    settings: Config,
    guidelines: Path,
    labels: Path,
    source: RunSource,
    metric: str,
    agent: str,
    usd: float | None,
) -> tuple[FileJudging, dict[LabelledRun, JudgedUnit]]:
    """Returns the judge over the source's runs, and the labelled runs with the judge's present verdicts."""
    verdicts = read_labels(labels, metric_names(None)).labels
    keys = sorted({each.metric for each in verdicts})
    wanted = [key for key in keys if metric in ("", key, key.partition(".")[2])]
    if len(wanted) != 1:
        raise UserError(f"the labels are about {', '.join(keys)}: choose one with --metric")
    held = settings.judge.model_copy(update={"guidelines": str(guidelines) if guidelines.exists() else None})
    words = word_of_most(each for each in verdicts if each.metric == wanted[0])
    said = {unit: word for (unit, _), word in words.items()}
    requests = [*source.requests()]
    judging = FileJudging(settings.model_copy(update={"judge": held}), requests, wanted[0], agent, os.environ, usd)
    runs = {}
    for unit, result in judging.first(said).items():
        passed, comment = said[unit]
        if agent in ("", result.unit.agent):
            session = result.unit.session_id or ""
            runs[LabelledRun(unit, passed, session, comment)] = judged(result)
    return judging, runs


def _tried(
    judging: FileJudging,
    runs: Mapping[LabelledRun, JudgedUnit],
    entries: Sequence[WrittenGuideline],
    propose: int,
    drill: int,
) -> tuple[Alignment, dict[str, str]]:
    """Tries candidates and proposals. Returns the outcome, and by guard why a proven guideline must not be adopted."""
    written = [
        each.text
        for each in entries
        if each.state == "candidate" and each.guideline.concerns(judging.metric, judging.agent)
    ]
    now = {run.unit: said for run, said in runs.items()}
    try:
        found = align_judge(
            [*runs],
            lambda text, some: judging(text, some) if text else now,
            written,
            lambda errors: _proposed(judging, errors, propose) if propose else (),
            judging.room,
        )
    except ValueError as error:
        raise UserError(f"{judging.metric}: {error}") from error
    proven = found.proven
    if proven is None:
        return found, {}
    drilled = _drill_guard(judging, proven.text, drill) if drill else ""
    guards = {"judge check": _check_guard(judging, proven.text), "drill": drilled}
    return found, {name: why for name, why in guards.items() if why}


def _proposed(judging: FileJudging, errors: Sequence[tuple[LabelledRun, JudgedUnit]], most: int) -> list[str]:
    name = judging.config.judge.model or ""
    rubric = proposing_rubric(registry(judging.config.metrics.modules)[judging.metric].question)

    async def ask() -> list[str]:
        async with _judge_of(judging.config, judging.environ) as found:
            asked = Judge(Desk(found, Forgetful()), disagreements(errors), name)
            try:
                verdict = await asked.ask(rubric)
            except (NoVerdictError, CallFailedError, OverBudgetError) as error:
                typer.echo(f"the judge's model proposes nothing: {error}", err=True)
                return []
            finally:
                judging.spent += asked.spent.cost_usd
            return [plain(each) for each in verdict.guidelines[:most]]

    return asyncio.run(ask())


def _check_guard(judging: FileJudging, text: str) -> str:
    if judging.metric != METRIC:
        return ""
    before, after = (_sheet(judging, each) for each in ("", text))
    passed = {probe.name for probe in before.probes if probe.passed}
    lost = sorted(probe.name for probe in after.probes if not probe.passed and probe.name in passed)
    return f"the judge check passed {', '.join(lost)} without it, and fails with it" if lost else ""


def _sheet(judging: FileJudging, text: str) -> Sheet:
    settings = judging.evaluator(text).settings.judge
    assert settings is not None
    guidance = settings.guidance(registry()[METRIC], judging.agent)
    name, items = judging.config.judge.model or "", planned()

    async def ask() -> CheckRun:
        async with _judge_of(judging.config, judging.environ) as found:
            run = CheckRun(found, name, at_a_time=judging.config.judge.concurrency, guidance=guidance)
            await run.run(items)
            return run

    run = asyncio.run(ask())
    judging.spent += run.spent.cost_usd
    return sheet(name, len(items), run.replies, run.spent)


def _drill_guard(judging: FileJudging, text: str, copies: int) -> str:
    """Returns a sentence if the judge notices fewer planted faults with the guideline than without it, else ``""``."""
    noticed = []
    chosen = chosen_faults([*_DRILLED], faults())
    for each in ("", text):
        with TraceFiles(close_rules(judging.config)) as files:
            files.add_all(judging.requests)
            tally = Drill(files, partial(judging.score, each), chosen, copies).run()
            noticed.append(sum(found.noticed.hits for found in tally.faults.values()))
    before, after = noticed
    return f"of the drill's faults it notices {after}, {before} without it" if after < before else ""


def _write(
    path: Path,
    entries: Sequence[WrittenGuideline],
    judging: FileJudging,
    found: Alignment,
    guards: Mapping[str, str],
) -> None:
    tried = {each.text: each for each in found.tried}
    told = {each.text for each in entries if each.guideline.concerns(judging.metric, judging.agent)}
    kept = [each for each in entries if each.text not in tried or each.state != "candidate"]
    fates = [_entry(each, judging, guards) for each in found.tried if each.source == "people" or each.text not in told]
    fates.sort(key=lambda entry: entry.state == "adopted")  # the one that was adopted last stands last
    write_guidelines([*kept, *fates], path)


def _entry(tried: TriedGuideline, judging: FileJudging, guards: Mapping[str, str]) -> WrittenGuideline:
    why = tried.why or "; ".join(guards.values())
    figures = {f"seen_{name}": value for name, value in _figures(tried.seen).items()}
    if tried.held_out is not None:
        figures |= {f"held_out_{name}": value for name, value in _figures(tried.held_out).items()}
    return WrittenGuideline(
        metric=judging.metric,
        agent=judging.agent,
        text=tried.text,
        state="rejected" if why else "adopted",
        source=judging.config.judge.model or "" if tried.source == "judge" else "people",
        why=why,
        figures=figures,
    )


def _figures(change: VerdictChange) -> dict[str, float]:
    found: dict[str, Any] = {"n": change.n, "right_before": change.before, "right_after": change.after}
    found |= {"gain_low": change.low, "gain_high": change.high}
    return {name: round(float(value), 4) for name, value in found.items() if value is not None}


def _print_alignment(
    found: Alignment, guards: Mapping[str, str], judging: FileJudging, path: Path, format_: RunFormat
) -> None:
    entries = [_entry(each, judging, guards) for each in found.tried]
    if format_ == "json":
        told = {"metric": judging.metric, "agent": judging.agent, "labelled": found.runs, "cost_usd": judging.spent}
        tried = [each.model_dump(mode="json") for each in entries]
        write_json(json.dumps({**told, "seen": found.seen, "errors": found.errors, "tried": tried}).encode())
        return
    rows = [
        (each.text, entry.source, _told(each.seen), _told(each.held_out), entry.state, entry.why)
        for each, entry in zip(found.tried, entries, strict=True)
    ]
    columns = ("guideline", "from", "chosen by", "proven on", "", "why")
    title = f"{judging.metric}: {found.errors} of {found.seen} labelled runs judged wrongly"
    print_table(columns, rows, title)
    adopted = [each for each in entries if each.state == "adopted"]
    cost = f"; US$ {judging.spent:.4f}" if judging.spent else ""
    typer.echo(f"{'adopted' if adopted else 'nothing adopted'}, {len(entries)} tried, kept in {path}{cost}")


def _told(change: VerdictChange | None) -> str:
    if change is None:
        return "-"
    between = "" if change.low is None else f" ({change.low:+.2f} to {change.high:+.2f})"
    return f"{change.before} → {change.after} of {change.n}{between}"
