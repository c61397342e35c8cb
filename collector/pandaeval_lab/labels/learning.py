"""Learns problem scores from labels: gathers runs that have one, fits a model for each agent, keeps it in a file."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.stats.learned import FORMAT, ProblemModel
from pandaeval_collector.analysis.stats.problem_features import RULES, Course, session_features
from pandaeval_collector.base.errors import UserError
from pandaeval_lab.labels.calibration import word_of_most
from pandaeval_lab.labels.files import save
from pandaeval_lab.labels.problem_fit import HeldOutFigures, learn
from pandaeval_otel.wire.labels import HumanLabel

PEOPLE = "people"
LEVELS = ("session", "trace")
_NONE = {"value": None}


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Whether a unit (a session, else a trace) was bad, by whose word, and about which metric (``level.name``)."""

    unit: str
    metric: str
    source: str
    bad: bool

    @property
    def level(self) -> str:
        return self.metric.partition(".")[0]


@dataclass(slots=True)
class LabelledRuns:
    """The runs of one agent at one level with verdicts of one source about one metric. ``groups``: the user of each
    run, whose runs belong together."""

    level: str
    agent: str
    source: str
    metric: str
    rows: list[Mapping[str, float]] = field(default_factory=list)
    bad: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


def of_people(labels: Iterable[HumanLabel]) -> Iterator[RunVerdict]:
    """Yields one verdict for each run and metric: that of the majority of labels. Leaves out ties."""
    for (unit, metric), (passed, _) in word_of_most(labels).items():
        yield RunVerdict(unit, metric, PEOPLE, not passed)


def of_judge(connection: sqlite3.Connection, metric: str) -> Iterator[RunVerdict]:
    """Yields a judge's latest verdict on each unit under one metric (``level.name``)."""
    rows = connection.execute(
        "SELECT unit, model, passed, max(no) FROM judged WHERE metric = ? AND passed IS NOT NULL GROUP BY unit",
        (metric,),
    )
    for unit, model, passed, _ in rows:
        yield RunVerdict(unit, metric, model, not passed)


def labelled_runs(
    facts_of: Callable[[str, str], Sequence[Mapping[str, Any]]],
    users: Mapping[str, str],
    verdicts: Iterable[RunVerdict],
    agent: str | None = None,
) -> list[LabelledRuns]:
    """Gathers the runs that have verdicts; for each agent and level, under the metric with the most. Leaves out runs
    that are unknown. ``facts_of``: of a level and a unit, what its traces left, in order (see
    :class:`pandaeval_collector.pipeline.line.facts.TraceFacts`); ``users``: by unit, where they are known; ``agent``:
    only runs of this agent."""
    found: dict[tuple[str, str, str, str], LabelledRuns] = {}
    for verdict in verdicts:
        if verdict.level not in LEVELS:
            continue
        facts = facts_of(verdict.level, verdict.unit)
        courses = [course for each in facts if (course := Course.unpack(each.get("course"))) is not None]
        if not facts or len(courses) < len(facts) or agent not in (None, facts[-1]["agent"]):
            continue
        key = verdict.level, facts[-1]["agent"], verdict.source, verdict.metric
        its = found.setdefault(key, LabelledRuns(*key))
        signals = [each["signals"] for each in facts] if verdict.level == "session" else []
        scores = [
            {name: s[name]["value"] for name in RULES if s.get(name, _NONE)["value"] is not None} for s in signals
        ]
        its.rows.append(session_features(courses, scores))
        its.bad.append(verdict.bad)
        its.groups.append(users.get(verdict.unit) or verdict.unit)
    best: dict[tuple[str, str], LabelledRuns] = {}
    for its in sorted(found.values(), key=lambda its: -len(its.rows)):
        best.setdefault((its.level, its.agent), its)
    return [best[key] for key in sorted(best)]


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def learned(runs: LabelledRuns) -> tuple[ProblemModel | None, HeldOutFigures]:
    """Fits a model to the runs, and measures it on runs held out; no model where :attr:`HeldOutFigures.refusal` says
    why."""
    model, evidence = learn(runs.rows, runs.bad, runs.groups)
    return (None if evidence.refusal else model), evidence


def keep(folder: Path, runs: LabelledRuns, model: ProblemModel, evidence: HeldOutFigures) -> Path:
    """Writes the model in place of an earlier one of its agent. Raises ``UserError`` where it cannot be written."""
    path = folder / f"{runs.level}-{_UNSAFE.sub('_', runs.agent)[:80] or 'unnamed'}.json"
    about = {name: getattr(runs, name) for name in ("level", "agent", "source", "metric")}
    held = {"format": FORMAT, "version": model.version, **about, "model": asdict(model), "evidence": asdict(evidence)}
    beside = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save(beside, json.dumps(held, indent=1) + "\n")
        beside.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
