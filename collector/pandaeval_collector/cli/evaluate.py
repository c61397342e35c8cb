"""``pandaeval evaluate``: scores stored traces."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from pandaeval_collector.cli._cases import HELP as CASES
from pandaeval_collector.cli._cases import REPORT_HELP
from pandaeval_collector.cli._github import Annotations, wanted
from pandaeval_collector.cli._output import safe
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.cli._where import HELP as WHERE
from pandaeval_collector.cli._where import Chooser, parse_where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandaeval_collector.cli._gates import Gate
    from pandaeval_collector.cli._summary import Summary
    from pandaeval_collector.config import Config


class Format(StrEnum):
    """How results are written."""

    table = "table"
    json = "json"
    junit = "junit"
    html = "html"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("evaluate")(evaluate)


def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            help="OTLP/JSON lines or length-delimited protobuf, or what Jaeger or Tempo answers; also .gz .xz .zst; "
            "- is standard input. Or the address of a trace store: 'jaeger://HOST:16686?service=NAME&since=2h', "
            "'tempo://HOST:3200?service=NAME'."
        ),
    ],
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML).")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Only these metrics, comma-separated. What a session metric reads of its traces is computed with it, "
            "as far as that asks no judge, and not shown."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Judge with this model, as litellm spells it, such as openai/gpt-4o: every judged metric, those too "
            "that judge.models gives another."
        ),
    ] = None,
    cases: Annotated[Path | None, typer.Option(help=CASES)] = None,
    cases_report: Annotated[Path | None, typer.Option(help=REPORT_HELP)] = None,
    where: Annotated[list[str] | None, typer.Option(help=WHERE, metavar="KEY=VALUE")] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Results of an earlier run, as JSON lines: leave with 1 when trials do worse than in it."),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="table is for people, json one result a line, junit XML for CI systems, html a report in one file.",
        ),
    ] = Format.table,
    output: Annotated[Path | None, typer.Option(help="Write results to this file instead of standard output.")] = None,
    annotate: Annotated[
        Annotations,
        typer.Option(
            "--annotations",
            help="github: what failed as annotations on standard error, and in the job's summary; auto: where GitHub "
            "Actions runs this.",
        ),
    ] = Annotations.auto,
) -> None:
    """Score stored traces with the same line that a running collector has.

    Leaves with 1 when a configured threshold is missed, a failure is too grave (gates.*) or trials do worse than a
    baseline's, with 2 when the input, or a file of it, cannot be used.
    """
    from pandaeval_collector.cli._baseline import Against, tell
    from pandaeval_collector.cli._cases import new_report, print_layers, suite_of, tell_matching, write_layers
    from pandaeval_collector.cli._failure_groups import Waiting
    from pandaeval_collector.cli._gating import checked
    from pandaeval_collector.cli._junit import write_junit
    from pandaeval_collector.cli._output import console
    from pandaeval_collector.cli._progress import progress
    from pandaeval_collector.cli._reading import Inputs
    from pandaeval_collector.cli._report import default_file, write_report
    from pandaeval_collector.cli._summary import Summary
    from pandaeval_collector.cli._tables import print_problems, print_summary
    from pandaeval_collector.cli._target import Target
    from pandaeval_collector.evaluator.trials import TrialGrader
    from pandaeval_collector.filerun import FileRun
    from pandaeval_collector.settings import close_rules, evaluator, judge

    only = parse_where(where or ())
    chooser = None if only is None else Chooser(only)
    asked = [name.strip() for name in metrics.split(",") if name.strip()] if metrics else None
    settings = _settings(config, asked, model, cases is not None)
    against = None if baseline is None else Against(baseline, settings.gates.baseline, settings.gates.max_unscored)
    suite = suite_of(cases, settings, cases_report)
    layers = None if suite is None else new_report(suite)
    summary, inputs = Summary(layers, against), Inputs(files)
    if format_ is Format.html and output is None:
        output = default_file(sys.stdout.isatty())
    with (
        progress(console(stderr=True)) as judged,
        FileRun(
            scorer := evaluator(settings),
            close_rules(settings),
            judge(settings),
            os.environ,
            judged,
            chooser,
            None if suite is None else TrialGrader(scorer, suite),
            settings.trials.k,
        ) as run,
        Target(output) as target,
    ):
        for request in inputs:
            run.add(request)
        if format_ is Format.html:
            with progress(console(stderr=True), "scoring") as scored:
                said = write_report(run, summary, target, files, settings.judge.model, where=only, on_scored=scored)
            typer.echo(f"{output or 'report'}: {said}", err=True)
        else:
            waiting = Waiting()
            for result in run.results(lambda decision: summary.runs(decision.traces)):
                failed = summary.take(result) is not None
                if format_ is Format.json and not (failed and waiting.takes(result)):
                    _write_json(target, result.to_json())
            summary.groups = run.grouped(summary.failures)
            for line in waiting.lines(summary.groups):
                _write_json(target, line)
        print_problems(console(stderr=True), run.read.problems, run.read.bad)
        if format_ is Format.table:
            print_summary(summary, console(file=target), settings.judge.model)
            if layers is not None:
                print_layers(layers, console(file=target))
        if layers is not None and suite is not None and run.trials is not None:
            tell_matching(run.trials, suite)
            if cases_report is not None:
                write_layers(layers, cases_report)
        found = checked(settings, summary)
        if format_ is Format.junit:
            write_junit(target, found, summary, settings.gates.fail_on_error_severity or "")
    _tell_what_is_missing(settings, summary, chooser, asked or (), quiet=format_ is Format.json)
    for gate in found:
        if gate.text:
            typer.echo(f"{'notice' if gate.passed else 'failed'}: {gate.text}", err=True)
            for example in gate.examples:
                typer.echo(f"  {safe(example)}", err=True)
    if wanted(annotate, os.environ):
        _annotate(found, summary, settings.gates.fail_on_error_severity)
    verdict = None if against is None else against.verdict()
    if verdict is not None:
        tell(verdict)
    inputs.leave_if_unusable()
    if not all(gate.passed for gate in found) or (verdict is not None and not verdict.passed):
        raise typer.Exit(1)


def _annotate(gates: Sequence[Gate], summary: Summary, least: str | None) -> None:
    """On standard error, which the runner reads as well: standard output may be the results."""
    from pandaeval_collector.cli._github import add_summary, commands

    for line in commands(gates, summary.groups, least):
        typer.echo(safe(line), err=True)
    if problem := add_summary(gates, summary, os.environ):
        typer.echo(f"notice: {problem}", err=True)


def _settings(path: Path | None, asked: list[str] | None, model: str | None, with_cases: bool = False) -> Config:
    """The configuration with the command's options in it; what keeps the judge from being asked is said before
    anything is read."""
    from pandaeval_collector.cli._config import check_asked, resolve_config

    options: dict[str, object] = {"metrics.enabled": asked, "judge.model": model}
    if model is not None:
        options["judge.models"] = _everywhere(model, path)
    found = resolve_config(path, options).config
    check_asked(found, asked or (), with_cases or found.cases.path is not None)
    if found.judge.model is not None:
        _check_judge(found)
    return found


def _everywhere(model: str, path: Path | None) -> dict[str, str]:
    """``judge.models`` by which metrics that name a model of their own are judged by this one, too."""
    from pandaeval_collector.cli._config import resolve_config
    from pandaeval_collector.metric.registry import registry

    known = registry(resolve_config(path).config.metrics.modules)
    return {key: model for key, metric in known.items() if metric.model is not None}


def _tell_what_is_missing(
    settings: Config, summary: Summary, chooser: Chooser | None, asked: Sequence[str], *, quiet: bool
) -> None:
    """Why there are no results where some might be expected."""
    from pandaeval_collector.cli._gating import unanswered

    if chooser is not None and (not chooser.chosen or not quiet):
        typer.echo(f"notice: {chooser.told()}", err=True)
    if summary.agents_traces:
        for line in unanswered(settings, summary, asked):
            typer.echo(f"notice: {line}", err=True)
    elif not quiet and not (chooser is not None and chooser.left_out):
        typer.echo("No agent traces in this input: `pandaeval inspect` shows what was understood.", err=True)


def _write_json(target: TextIO, line: bytes) -> None:
    if target is sys.stdout:
        write_json(line)
    else:
        target.write(line.decode() + "\n")


def _check_judge(config: Config) -> None:
    from pandaeval_collector.config import masked, secret
    from pandaeval_collector.judging import check_installed
    from pandaeval_collector.judging.reachable import unreachable

    check_installed()
    secret(config.judge.api_key_env, os.environ)
    if config.judge.api_base is not None and (why := unreachable(config.judge.api_base)):
        shown = masked(config.judge.api_base)
        cure = "see whether it is up, and judge.api_base right; what needs no judge is scored all the same"
        typer.echo(f"notice: the judge's server {shown} cannot be reached ({why}): {cure}", err=True)
