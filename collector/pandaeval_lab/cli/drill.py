"""``pandaeval drill``: plants known faults into good runs, and counts detections."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.untrusted.user_files import read_given
from pandaeval_collector.cli._config import ConfigFile, resolve_config
from pandaeval_collector.cli._options import file_option, option, output_option
from pandaeval_collector.cli._output import (
    Row,
    RunFormat,
    console,
    many,
    message,
    output_file,
    print_table,
    progress,
    write_json_lines,
)
from pandaeval_collector.config import Config
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator, judge as judge_settings
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.view.texts import NO_VALUE, dollars, interval, number
from pandaeval_lab.cli._inputs import RunSource, print_problems, run_source
from pandaeval_lab.cli._judges import JudgeModel, settings_of
from pandaeval_lab.drill.drill import Drill, Where, chosen_faults
from pandaeval_lab.drill.fault import faults as all_faults
from pandaeval_lab.drill.tally import drops
from pandaeval_lab.replay.judge import ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

_COPIES, _JUDGED_COPIES = 200, 2
"""Copies of each fault: without a judge, and with a judge."""


@run_source
def drill(
    source: RunSource,
    n: Annotated[
        int | None,
        option(f"Number of copies of each fault; default: {_COPIES}, or {_JUDGED_COPIES} with --judge.", "--n", min=1),
    ] = None,
    faults: Annotated[str | None, option("Faults or families of faults, separated by commas; default: all.")] = None,
    seed: Annotated[int, option("Random seed for the choice of runs and values.")] = 0,
    judge: Annotated[bool, option("Also send the copies, and their originals, to the judge.", "--judge")] = False,
    model: JudgeModel = None,
    budget: Annotated[float, option("Maximum cost of the judge, in US dollars.", min=0.0)] = 1.0,
    baseline: Annotated[
        Path | None,
        file_option("JSON file of an earlier drill. If detection drops significantly, exit with 1."),
    ] = None,
    config: ConfigFile = None,
    format_: Annotated[RunFormat, option("Output format. You can use json as --baseline later.", "--format")] = "table",
    output: Annotated[Path | None, output_option("Write to this file instead of standard output.")] = None,
) -> None:
    """Plant known faults in good runs and count detections.

    The drill needs no labels and no model. With --judge, it also tests the judge. Exit code 1: a metric detects
    significantly fewer faults than in the baseline. Exit code 2: the input cannot be used.
    """
    if model is not None and not judge:
        raise UserError("--model names a judge: add --judge, or omit --model")
    before = None if baseline is None else baseline_of(baseline)
    try:
        chosen = chosen_faults(None if faults is None else faults.replace(" ", "").split(","), all_faults())
    except ValueError as error:
        raise UserError(f"--faults {faults}: {error}") from error
    settings = settings_of(config, model) if judge else resolve_config(config).config
    scorer = evaluator(settings)
    alone = Evaluator(scorer.embedder, replace(scorer.settings, judge=None))
    asked = JudgedScore(settings, scorer, budget) if judge else None
    with (
        TraceFiles(close_rules(settings)) as files,
        progress("drilling") as on_done,
        output_file(output) as target,
    ):
        files.add_all(source.requests())
        most = n or (_JUDGED_COPIES if judge else _COPIES)
        tally = Drill(files, lambda some, where: replay(some, alone, where=where), chosen, most, seed, asked).run(
            on_done
        )
        print_problems(files.read)
        worse = [] if before is None else drops(before, tally)
        figures = tally.to_dict() | (asked.to_dict() if asked else {})
        if format_ == "json":
            write_json_lines([figures], target)
        else:
            print_drill(figures, console(file=target))
    for drop in worse:
        message(f"failed: {drop.text}")
    if worse:
        raise typer.Exit(1)


class JudgedScore:
    """Scores traces with all metrics of traces and turns, also judged metrics, for at most ``budget`` US dollars."""

    def __init__(self, settings: Config, scorer: Evaluator, budget: float) -> None:
        found = scorer.settings
        assert found.judge is not None, "settings_of saw to it"
        levels = {each.key for each in registry(found.modules).values() if each.level in ("trace", "turn")}
        enabled = levels if found.enabled is None else levels & {*found.enabled}
        every = replace(found.judge, selection=Selection())
        self._evaluator = Evaluator(scorer.embedder, replace(found, enabled=enabled, judge=every))
        self._settings, self._budget, self._cost = settings, budget, 0.0

    def __call__(self, files: TraceFiles, where: Where | None) -> Iterator[Result]:
        configured = judge_settings(self._settings)
        assert configured is not None, "settings_of saw to it"
        limit = capped(configured, self._budget - self._cost)
        with ReplayJudge(files.store, self._evaluator, limit, os.environ) as asked:
            yield from replay(files, self._evaluator, asked, where=where)
            self._cost += asked.cost_usd

    def to_dict(self) -> dict[str, Any]:
        return {"judge": {"model": self._settings.judge.model, "cost_usd": round(self._cost, 6)}}


def baseline_of(path: Path) -> dict[str, Any]:
    """Read figures of an earlier drill. Raises ``UserError``."""
    try:
        faults = json.loads(read_given(path))["faults"]
        return {"faults": {name: {"by_metric": _counts(fault["by_metric"])} for name, fault in faults.items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--baseline {path}: not the output of `pandaeval drill --format json` ({error})") from error


def _counts(shares: Row) -> Row:
    return {metric: {key: int(share[key]) for key in ("hits", "n")} for metric, share in shares.items()}


def print_drill(figures: Row, on: Console) -> None:
    runs = f"{figures['good']:,} runs that look good, of {figures['runs']:,} read"
    planted = sum(fault["n"] for fault in figures["faults"].values())
    on.print(f"{many(planted, 'fault')}, each in a copy of one of {runs}")
    if judged := figures.get("judge"):
        on.print(f"judge: {judged['model']}, {dollars(judged['cost_usd'])}")
    faults = {name: fault for name, fault in figures["faults"].items() if fault["n"]}
    columns = ("fault", "family", "n", "failed", "95 %", "undecided", "step", "by")
    print_table(columns, _fault_rows(faults), on=on)
    flagged = [(name, each["n"], _percent(each), _interval(each)) for name, each in figures["untouched"].items()]
    print_table(("untouched runs", "n", "failed", "95 %"), flagged, on=on)
    missing = [(name, _why(fault)) for name, fault in figures["faults"].items() if not fault["n"]]
    if missing:
        print_table(("not applicable", "why"), missing, on=on)


def _why(each: Row) -> str:
    commonest = [*each["not_applicable"].items()][:2]
    return "; ".join(f"{why} ({count:,})" for why, count in commonest) or "no run looked good"


def _fault_rows(faults: Row) -> Iterator[tuple[str, ...]]:
    for name, each in faults.items():
        by = ", ".join(f"{metric} {_percent(share)}" for metric, share in [*each["by_metric"].items()][:3])
        shares = (_percent(each[key]) for key in ("could_not_tell", "blamed"))
        noticed = each["noticed"]
        yield name, each["family"], f"{each['n']:,}", _percent(noticed), _interval(noticed), *shares, by


def _percent(share: Row) -> str:
    return number(share["share"], ".0%")


def _interval(share: Row) -> str:
    return interval(share["low"], share["high"], ".0%") or NO_VALUE
