"""The work of `pandaeval judge align`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import RunFormat, message, print_json, print_table
from pandaeval_collector.config import Config
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.rulings import Ruling
from pandaeval_collector.runs.rulings_file import write_rulings
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.view.texts import NO_VALUE, dollars, interval
from pandaeval_lab.alignment.align import (
    Alignment,
    JudgedUnit,
    LabelledRun,
    TriedRuling,
    VerdictChange,
    align as align_judge,
)
from pandaeval_lab.alignment.file_judging import FileJudging, judged
from pandaeval_lab.alignment.proposals import disagreements, plain, proposing_rubric
from pandaeval_lab.cli._inputs import RunSource
from pandaeval_lab.cli._judges import judge_of
from pandaeval_lab.cli._names import names_of
from pandaeval_lab.labels.calibration import word_of_most
from pandaeval_lab.labels.files import read_labels

_PROPOSED = 3
"""Maximum number of rulings of the judge model that are tried."""


def prepared(
    settings: Config, labels: Path, source: RunSource, metric: str, agent: str
) -> tuple[FileJudging, dict[LabelledRun, JudgedUnit]]:
    """Return the judge, and the labelled runs with the judge's present verdicts. Raises ``UserError``."""
    verdicts = read_labels(labels, names_of(settings)).labels
    keys = sorted({each.metric for each in verdicts})
    wanted = [key for key in keys if metric in ("", key, key.partition(".")[2])]
    if len(wanted) != 1:
        raise UserError(f"the labels cover {', '.join(keys)}: choose one of these metrics with --metric")
    words = word_of_most(each for each in verdicts if each.metric == wanted[0])
    word_by_unit = {unit: word for (unit, _), word in words.items()}
    requests = [*source.requests()]
    judging = FileJudging(settings, requests, wanted[0], agent, os.environ)
    runs = {}
    for unit, result in judging.first(word_by_unit).items():
        passed, comment = word_by_unit[unit]
        if agent in ("", result.unit.agent):
            session = result.unit.session_id or ""
            runs[LabelledRun(unit, passed, session, comment)] = judged(result)
    return judging, runs


def tried(
    judging: FileJudging,
    runs: Mapping[LabelledRun, JudgedUnit],
    entries: Sequence[Ruling],
) -> tuple[Alignment, list[Ruling]]:
    """Return the alignment, and its tried rulings, adopted or rejected. Raises ``UserError``."""
    written = [each.text for each in entries if each.state == "candidate" and _concerns(each, judging)]
    now = {run.unit: judged_unit for run, judged_unit in runs.items()}
    try:
        found = align_judge(
            [*runs],
            lambda text, some: judging(text, some) if text else now,
            written,
            lambda errors: _proposed(judging, errors),
        )
    except ValueError as error:
        raise UserError(f"{judging.metric}: {error}") from error
    return found, [_entry(each, judging) for each in found.tried]


def _proposed(judging: FileJudging, errors: Sequence[tuple[LabelledRun, JudgedUnit]]) -> list[str]:
    name = judging.config.judge.model or ""
    rubric = proposing_rubric(registry(judging.config.metrics.modules)[judging.metric].question)

    async def ask() -> list[str]:
        async with judge_of(judging.remaining(), judging.environ) as found:
            asked = Judge(JudgeClient(found), disagreements(errors), name)
            try:
                verdict = await asked.ask(rubric)
            except (NoVerdictError, CallFailedError, OverBudgetError) as error:
                message(f"the judge model proposed no ruling: {error}")
                return []
            finally:
                judging.spent += asked.spent.cost_usd
            return [plain(each) for each in verdict.guidelines[:_PROPOSED]]

    return asyncio.run(ask())


def write(path: Path, entries: Sequence[Ruling], judging: FileJudging, fates: Sequence[Ruling]) -> None:
    tried = {each.text for each in fates}
    known_texts = {each.text for each in entries if _concerns(each, judging)}
    kept = [each for each in entries if each.text not in tried or each.state != "candidate"]
    new = [each for each in fates if each.author == "people" or each.text not in known_texts]
    new.sort(key=lambda entry: entry.state == "adopted")  # the ruling that was adopted last comes last
    write_rulings([*kept, *new], path)


def _concerns(entry: Ruling, judging: FileJudging) -> bool:
    return entry.metric == judging.metric and entry.agent in ("", judging.agent)


def _entry(tried: TriedRuling, judging: FileJudging) -> Ruling:
    changes = {"seen": tried.seen, "held_out": tried.held_out}
    figures = {f"{by}_{name}": value for by, change in changes.items() for name, value in _figures(change).items()}
    return Ruling.model_validate(
        {
            "metric": judging.metric,
            "agent": judging.agent,
            "text": tried.text,
            "state": "rejected" if tried.why else "adopted",
            "author": judging.config.judge.model or "" if tried.source == "judge" else "people",
            "why": tried.why,
            "figures": figures,
        }
    )


def _figures(change: VerdictChange | None) -> dict[str, float]:
    if change is None:
        return {}
    found: dict[str, Any] = {"n": change.n, "right_before": change.before, "right_after": change.after}
    found |= {"gain_low": change.low, "gain_high": change.high}
    return {name: round(float(value), 4) for name, value in found.items() if value is not None}


def print_alignment(
    found: Alignment, entries: Sequence[Ruling], judging: FileJudging, path: Path, format_: RunFormat
) -> None:
    if format_ == "json":
        summary = {"metric": judging.metric, "agent": judging.agent, "labelled": found.runs, "cost_usd": judging.spent}
        tried = [each.model_dump(mode="json") for each in entries]
        return print_json([{**summary, "seen": found.seen, "errors": found.errors, "tried": tried}])
    rows = [
        (each.text, entry.author, _told(each.seen), _told(each.held_out), entry.state, entry.why)
        for each, entry in zip(found.tried, entries, strict=True)
    ]
    columns = ("ruling", "from", "first half", "other half", "", "why")
    title = f"{judging.metric}: {found.errors} of {found.seen} labelled runs in the first half were judged wrongly"
    print_table(columns, rows, title)
    adopted = [each for each in entries if each.state == "adopted"]
    cost = f"; {dollars(judging.spent)}" if judging.spent else ""
    typer.echo(f"{'ruling adopted' if adopted else 'no ruling adopted'}, {len(entries)} tried, saved in {path}{cost}")


def _told(change: VerdictChange | None) -> str:
    if change is None:
        return NO_VALUE
    between = interval(change.low, change.high, "+.2f")
    return f"{change.before} → {change.after} of {change.n}" + (f" ({between})" if between else "")
