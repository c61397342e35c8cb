"""Runs with verdicts, and the features that a problem score is learned from."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

import orjson

from pandaeval_collector.analysis.stats.problem_features import RULES, Course, session_features
from pandaeval_otel.wire.labels import HumanLabel

PEOPLE = "people"
LEVELS = ("session", "trace")
_MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Whether a unit (a session, else a trace) was bad, who said so, and about which metric (``level.name``)."""

    unit: str
    metric: str
    source: str
    bad: bool
    chance: float | None = None
    """To be drawn for labelling, where it was."""

    @property
    def level(self) -> str:
        return self.metric.partition(".")[0]


@dataclass(slots=True)
class LabelledRuns:
    """The runs of one agent at one level with verdicts of one source about one metric. ``groups``: runs of one user
    belong together; ``chances``: to be drawn for labelling, where a run was."""

    level: str
    agent: str
    source: str
    metric: str
    rows: list[Mapping[str, float]] = field(default_factory=list)
    bad: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    chances: list[float | None] = field(default_factory=list)


class ReadableRuns(Protocol):
    """Where runs are read from."""

    def facts(self, level: str, unit: str) -> Sequence[Mapping[str, Any]]:
        """What the traces of a unit left behind, in order (see
        :class:`pandaeval_collector.pipeline.line.facts.TraceFacts`); none of a unit that is not known."""
        ...

    def user(self, level: str, unit: str) -> str:
        """Whose it is; ``""`` where that is not known."""
        ...


def of_people(labels: Iterable[HumanLabel]) -> Iterator[RunVerdict]:
    """One verdict for each run and metric: what most people said. Runs that as many passed as failed are left out."""
    said: dict[tuple[str, str], list[float]] = defaultdict(list)
    chances: dict[tuple[str, str], float | None] = {}
    for label in labels:
        passed = label.passed if label.passed is not None else (label.score or 0.0) >= _MIDDLE
        said[label.unit, label.metric].append(float(passed))
        chances[label.unit, label.metric] = label.probability
    for (unit, metric), votes in said.items():
        if fmean(votes) != _MIDDLE:
            yield RunVerdict(unit, metric, PEOPLE, fmean(votes) < _MIDDLE, chances[unit, metric])


def of_judge(connection: sqlite3.Connection, metric: str) -> Iterator[RunVerdict]:
    """What a judge said last of each unit under one metric (``level.name``)."""
    rows = connection.execute(
        "SELECT unit, model, passed, max(no) FROM judged WHERE metric = ? AND passed IS NOT NULL GROUP BY unit",
        (metric,),
    )
    for unit, model, passed, _ in rows:
        yield RunVerdict(unit, metric, model, not passed)


def labelled_runs(runs: ReadableRuns, verdicts: Iterable[RunVerdict], agent: str | None = None) -> list[LabelledRuns]:
    """The runs that verdicts are about; of each agent and level those of the metric with most verdicts. Runs that are
    not known, or that an older version decided, are left out. ``agent``: only of this one."""
    found: dict[tuple[str, str, str, str], LabelledRuns] = {}
    for verdict in verdicts:
        if verdict.level not in LEVELS:
            continue
        facts = runs.facts(verdict.level, verdict.unit)
        courses = [course for each in facts if (course := Course.unpack(each.get("course"))) is not None]
        if not facts or len(courses) < len(facts) or agent not in (None, facts[-1]["agent"]):
            continue
        key = verdict.level, facts[-1]["agent"], verdict.source, verdict.metric
        its = found.setdefault(key, LabelledRuns(*key))
        scores = [rule_scores(each["signals"]) for each in facts] if verdict.level == "session" else []
        its.rows.append(session_features(courses, scores))
        its.bad.append(verdict.bad)
        its.chances.append(verdict.chance)
        its.groups.append(runs.user(verdict.level, verdict.unit) or verdict.unit)
    return _largest(found.values())


def _largest(found: Iterable[LabelledRuns]) -> list[LabelledRuns]:
    best: dict[tuple[str, str], LabelledRuns] = {}
    for each in found:
        there = best.get((each.level, each.agent))
        if there is None or len(there.rows) < len(each.rows):
            best[each.level, each.agent] = each
    return [best[key] for key in sorted(best)]


def rule_scores(signals: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The scores of the rules that features are made of, from the signals of a trace."""
    values = {name: signals[name]["value"] for name in RULES if name in signals}
    return {name: value for name, value in values.items() if value is not None}


class StoredSessions:
    """The sessions of a store; traces alone leave nothing behind there."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def facts(self, level: str, unit: str) -> Sequence[Mapping[str, Any]]:
        if level != "session":
            return ()
        rows = self._connection.execute(
            """SELECT body FROM members WHERE session = (SELECT no FROM sessions WHERE session_id = ?)
               ORDER BY start_ns, trace_id""",
            (unit,),
        )
        return [orjson.loads(body) for (body,) in rows]

    def user(self, level: str, unit: str) -> str:
        row = self._connection.execute(
            "SELECT max(user) FROM listed WHERE session = (SELECT no FROM sessions WHERE session_id = ?)", (unit,)
        ).fetchone()
        return str(row[0] or "")
