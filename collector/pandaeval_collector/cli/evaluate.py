"""``pandaeval evaluate``: scores stored traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.cli._github import AnnotationTarget
from pandaeval_collector.cli._where import HELP as WHERE
from pandaeval_collector.cli._where import Where, parse_where


class ResultFormat(StrEnum):
    """The formats in which results are written."""

    table = "table"
    json = "json"
    junit = "junit"
    html = "html"


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """The options of the command, each explained where the command declares it. ``metrics``: names, ``None`` for the
    configured ones; ``where``: ``None`` for all traces; ``output``: ``None`` for standard output;
    ``workers``: processes beside this one, ``None`` for all cores but one."""

    files: Sequence[str]
    config: Path | None = None
    metrics: Sequence[str] | None = None
    model: str | None = None
    cases: Path | None = None
    cases_report: Path | None = None
    where: Where | None = None
    baseline: Path | None = None
    format: ResultFormat = ResultFormat.table
    output: Path | None = None
    annotations: AnnotationTarget = AnnotationTarget.auto
    workers: int | None = None


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
    cases: Annotated[
        Path | None, typer.Option(help="Case file (YAML or JSON): traces that are trials of its cases are graded.")
    ] = None,
    cases_report: Annotated[
        Path | None,
        typer.Option(help="Write the three-layer report of the cases to this file: .json, or .xml for JUnit."),
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help=WHERE, metavar="KEY=VALUE")] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Results of an earlier run, as JSON lines: leave with 1 when trials do worse than in it."),
    ] = None,
    format_: Annotated[
        ResultFormat,
        typer.Option(
            "--format",
            help="table is for people, json one result a line, junit XML for CI systems, html a report in one file.",
        ),
    ] = ResultFormat.table,
    output: Annotated[Path | None, typer.Option(help="Write results to this file instead of standard output.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            help="Processes beside this one that read and score the traces of large files; 0: none. Else one for each "
            "core but one. With --where, --cases or html this process does it all.",
            show_default=False,
        ),
    ] = None,
    annotate: Annotated[
        AnnotationTarget,
        typer.Option(
            "--annotations",
            help="github: what failed as annotations on standard error, and in the job's summary; auto: where GitHub "
            "Actions runs this.",
        ),
    ] = AnnotationTarget.auto,
) -> None:
    """Score stored traces with the same line that a running collector has.

    Leaves with 1 when a configured threshold is missed, a failure is too grave (gates.*) or trials do worse than a
    baseline's, with 2 when the input, or a file of it, cannot be used.
    """
    from pandaeval_collector.cli._evaluation import Evaluation

    options = EvaluateOptions(
        files,
        config,
        metrics=None if metrics is None else _names(metrics),
        model=model,
        cases=cases,
        cases_report=cases_report,
        where=parse_where(where or ()),
        baseline=baseline,
        format=format_,
        output=output,
        annotations=annotate,
        workers=workers,
    )
    Evaluation(options).run()


def _names(metrics: str) -> list[str]:
    """Returns the names in ``--metrics``; ``UserError`` for none: an unset variable must not mean all."""
    from pandaeval_collector.base.errors import UserError

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        raise UserError("--metrics names no metric: leave it out for all of them; `pandaeval metrics` lists them")
    return names
