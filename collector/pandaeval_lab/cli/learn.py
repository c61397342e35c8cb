"""``pandaeval learn``: fits a problem score on labels of the application's own runs; ``pandaeval learn steps``: what
tells the step that broke a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import opened_folder, resolve_config
from pandaeval_collector.cli._options import config_option, file_option
from pandaeval_collector.cli._output import console, many, table
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator, learned_folder
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import people
from pandaeval_lab.cli._inputs import RunSource, run_source
from pandaeval_lab.cli._names import metric_names
from pandaeval_lab.cli._tables import print_problems
from pandaeval_lab.labels.files import read_labels
from pandaeval_lab.labels.learning import (
    HeldOutFigures,
    LabelledRuns,
    RunVerdict,
    keep,
    labelled_runs,
    learned,
    of_judge,
    of_people,
)
from pandaeval_lab.labels.step_learning import labelled_steps, learn_steps, read_steps
from pandaeval_lab.replay.trace_files import TraceFiles


class _OrSteps(TyperGroup):
    """Takes all but ``steps`` for the arguments of the problem score."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args[:1] == ["steps"] else ["problem", *args])


learn = typer.Typer(cls=_OrSteps, help="Learn from your own labels: a problem score, or the step that breaks a run.")
_UNNAMED = "(no agent's name)"
_FolderOption = typer.Option(
    "--output", "-o", metavar="FOLDER", help="Where models go; if not given, where a collector looks for them."
)
_DryRunOption = typer.Option("--dry-run", help="Say what would be learned, and write nothing.")


@learn.command()
@run_source
def problem(
    source: RunSource,
    labels: Annotated[Path | None, file_option("Verdicts, as `pandaeval labels import` takes them.")] = None,
    judged: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="With --store: learn from a judge's verdicts under this metric instead."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent.")] = None,
    out: Annotated[Path | None, _FolderOption] = None,
    dry_run: Annotated[bool, _DryRunOption] = False,
    format_: Annotated[
        RunFormat, typer.Option("--format", help="table, or json: one object for each agent.")
    ] = "table",
    config: Annotated[Path | None, config_option("Configuration file (YAML).")] = None,
) -> None:
    """Fit a problem score on labels of your own runs: session.problem, and trace.problem for runs without a session.

    It takes 40 labelled runs of an agent, 8 of them good and 8 bad. A model is kept only where it tells problems, among
    runs of equal length that it has not seen, better than length does. Leaves with 1 where nothing could be learned.
    `pandaeval learn steps` learns which step breaks a run.
    """
    settings = resolve_config(config).config
    store = source.store
    verdicts = _verdicts(labels, judged, store, config)
    folder = _folder(out, store, settings)
    with TraceFiles(close_rules(settings)) as run:
        run.add_all(source.requests())
        facts_of, users = _scored(run, evaluator(settings, learning=True))
        print_problems(console(stderr=True), run.read.problems, run.read.bad)
        found = labelled_runs(facts_of, users, verdicts, agent)
    outcomes = [(runs, *learned(runs)) for runs in found]
    written = {
        (runs.level, runs.agent): keep(folder, runs, model, evidence)
        for runs, model, evidence in outcomes
        if model is not None and not dry_run
    }
    if format_ == "json":
        for runs, model, evidence in outcomes:
            path = written.get((runs.level, runs.agent))
            about = {"level": runs.level, "agent": runs.agent, "metric": runs.metric, "source": runs.source}
            version = {"version": model and model.version, "refusal": evidence.refusal}
            typer.echo(json.dumps({**about, **version, **asdict(evidence), "file": path and str(path)}))
    else:
        _print(outcomes, len(verdicts), written, folder, dry_run)
    if not any(model for _, model, _ in outcomes):
        raise typer.Exit(1)


@learn.command()
@run_source
def steps(
    labels: Annotated[Path, typer.Argument(help="The first wrong steps: CSV or JSON lines with trace_id, span_id.")],
    source: RunSource,
    out: Annotated[Path | None, _FolderOption] = None,
    dry_run: Annotated[bool, _DryRunOption] = False,
    config: Annotated[Path | None, config_option("Configuration file (YAML).")] = None,
) -> None:
    """Learn from labels of steps which step breaks a run: trace.blame names it where no finding does.

    It takes 10 labelled runs of an agent. A model is kept only where it names the wrong step of runs that it has not
    seen more often than chance and than naming the last step. Leaves with 1 where nothing could be learned.
    """
    settings = resolve_config(config).config
    wrong = read_steps(labels)
    folder = _folder(out, source.store, settings)
    with TraceFiles(close_rules(settings)) as run:
        run.add_all(source.requests())
        found = labelled_steps(run.traces(), wrong)
        print_problems(console(stderr=True), run.read.problems, run.read.bad)
    outcomes = [(runs, *learn_steps(runs)) for runs in found]
    for runs, model, figures in outcomes:
        path = keep(folder, runs, model, figures) if model is not None and not dry_run else ""
        console().print(Text(f"{runs.agent or _UNNAMED}: {figures.refusal or figures} {path}"))
    if missing := len(wrong) - sum(figures.labels for *_, figures in outcomes):
        typer.echo(f"left out: {many(missing, 'trace')} not among these runs, or without a step of that id", err=True)
    if not any(model for _, model, _ in outcomes):
        raise typer.Exit(1)


def _folder(out: Path | None, store: Path | None, settings: Config) -> Path:
    return out or (store / learned_folder(settings).name if store is not None else learned_folder(settings))


def _scored(
    run: TraceFiles, scorer: Evaluator
) -> tuple[Callable[[str, str], Sequence[Mapping[str, Any]]], dict[str, str]]:
    """Scores the runs of files once, and returns the facts of each, and the users by unit."""
    alone: dict[str, Mapping[str, Any]] = {}
    users: dict[str, str] = {}

    def take(decision: Conclusion) -> None:
        for each in decision.runs:
            unit, facts = each.unit, each.member.facts
            if unit.session_id is None:
                alone[unit.id] = {"agent": facts.agent, "signals": {}, "course": facts.course}
            if each.trace and each.trace.user_id:
                users[unit.session_id or unit.id] = each.trace.user_id

    def facts_of(level: str, unit: str) -> Sequence[Mapping[str, Any]]:
        if level == "trace":
            return [alone[unit]] if unit in alone else ()
        return [json.loads(row.body) for row in run.store.reads.session_traces(unit)]

    for _ in replay(run, scorer, on_decided=take):
        pass
    return facts_of, users


def _verdicts(labels: Path | None, judged: str | None, store: Path | None, config: Path | None) -> list[RunVerdict]:
    if labels is not None:
        return list(of_people(read_labels(labels, metric_names(config)).labels))
    if store is None:
        raise UserError("say what went wrong in which run: --labels FILE, or --store FOLDER, which holds labels")
    with opened_folder(store) as connection:
        if judged is None:
            return list(of_people(people.labels(connection)))
        keys = metric_names(config).select(judged)
        if len(keys) != 1:
            raise UserError(f"--judged {judged}: name one metric with its level, as session.goal_completion")
        return list(of_judge(connection, keys[0]))


def _print(
    outcomes: Sequence[tuple[LabelledRuns, Any, HeldOutFigures]],
    verdicts: int,
    written: Mapping[tuple[str, str], Path],
    folder: Path,
    dry_run: bool,
) -> None:
    out = console()
    if not outcomes:
        out.print(f"{many(verdicts, 'verdict')}, and none about a session (or a trace without one) among these runs")
        return
    head = ("agent", "of", "labels", "bad", "AUROC", "at equal length", "length alone", "calibration error")
    rows = []
    for runs, _, found in outcomes:
        figures = ("-",) * 4
        if found.same_length is not None:
            alone = f"{found.baseline:.2f} ({found.baseline_name})"
            figures = str(found.auroc), str(found.same_length), alone, f"{found.calibration_error:.3f}"
        rows.append((runs.agent, runs.metric, str(found.labels), str(found.bad), *figures))
    out.print(table(head, rows, on=out, title="Problems in runs that the model had not seen"))
    for runs, model, evidence in outcomes:
        name = runs.agent or _UNNAMED
        if model is None:
            out.print(Text(f"{name}: {evidence.refusal}"))
        elif dry_run:
            out.print(Text(f"{name}: would be written to {folder}"))
        else:
            out.print(Text(f"{name}: {written[runs.level, runs.agent]} (version {model.version})"))
