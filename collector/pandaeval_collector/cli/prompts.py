"""``pandaeval prompts``: the exact words that a judge is asked with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import printable
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._inputs import requests
from pandaeval_collector.cli._output import console
from pandaeval_collector.cli._prompts import of_failures, sent, shared
from pandaeval_collector.config import Config, MetricNames
from pandaeval_collector.judge.rubric import TOGETHER, Guidance, guidance
from pandaeval_collector.runs.judging_files import adopted, read_guidelines
from pandaeval_collector.runs.trace_files import TraceFiles
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import is_genai


def prompts(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One judged metric, or turn (those of turns, in one call), or error_deduplication or same_cause, "
            "which group failures; without it all."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    trace: Annotated[str | None, typer.Option(help="Fill the prompts with the first agent trace of this file.")] = None,
) -> None:
    """Print all that is sent for the judged metrics, extractions and schemas included: empty, or filled with a trace.

    What an earlier extraction finds (task, plan) is given to a question as data; it is not known here, and a
    placeholder stands for it.
    """
    settings = resolve_config(config).config
    known = registry(settings.metrics.modules)
    judged = {key: metric for key, metric in known.items() if metric.kind == "llm"}
    out = console()
    grouping = of_failures(settings.judge.language)
    for each, text in grouping.items():
        if name in (None, each):
            out.print(printable(text), soft_wrap=True)
    if name in grouping:
        return
    filled = _first_trace(trace) if trace is not None else None
    in_one = settings.judge.turn_calls == "shared" and settings.judge.votes == 1
    together = shared(judged.values(), filled, settings.judge.language) if in_one else ""
    if together and name in (None, TOGETHER):
        out.print(printable(together), soft_wrap=True)
    if together and name == TOGETHER:
        return
    if name is not None:
        names = MetricNames((metric.level, metric.name) for metric in known.values())
        keys = names.select(name)
        if not keys:
            raise UserError(f"{name}: {names.unknown(name)}")
        judged = {key: metric for key, metric in judged.items() if key in keys}
        if not judged:
            raise UserError(f"{name} asks no model: there is no prompt; `pandaeval metrics` tells which do (kind llm)")
    shown: set[tuple[str, str]] = set()
    for key, metric in judged.items():
        added = _added(settings, metric, filled)
        for rubric, text in sent(metric, filled, settings.judge.language, added):
            if (rubric.name, rubric.version) not in shown:
                shown.add((rubric.name, rubric.version))
                out.print(f"=== {key}: {rubric.name}, version {rubric.version} ===\n", soft_wrap=True)
                out.print(printable(text), soft_wrap=True)


def _added(settings: Config, metric: Metric[Any, Any], trace: Trace | None) -> Guidance:
    """Returns the adopted guidelines for the metric, those for the trace's agent included."""
    if settings.judge.guidelines is None or not metric.rubrics:
        return Guidance()
    held = adopted(read_guidelines(Path(settings.judge.guidelines)))
    return guidance(held, metric.key, metric.rubrics[-1].name, "" if trace is None else trace.agent)


def _first_trace(name: str) -> Trace:
    with TraceFiles() as run:
        run.add_all(requests([name]))
        for trace in run.traces():
            if is_genai(trace):
                return trace
    raise UserError(f"{name}: no agent trace in it")
