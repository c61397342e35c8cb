"""The labelled runs of a store, with the features that a problem score is learned from."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import orjson

from pandaeval_collector.analysis.rules.course import Course
from pandaeval_collector.analysis.stats.problem_features import RULES, session_features
from pandaeval_otel.wire.labels import HumanLabel

PEOPLE = "people"
_MIDDLE = 0.5
Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a unit (a session, else a trace): by whom, of which metric, whether it was bad."""

    unit: str
    metric: str
    source: str
    bad: bool


@dataclass(slots=True)
class LabelledRuns:
    """The runs of one agent at one level that have a verdict of one source about one metric."""

    level: str
    agent: str
    source: str
    metric: str
    units: list[str] = field(default_factory=list)
    rows: list[Features] = field(default_factory=list)
    bad: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


def of_people(labels: Iterable[HumanLabel]) -> Iterator[Verdict]:
    """One for each run and metric: what most people said. Runs that as many passed as failed are left out."""
    said: dict[tuple[str, str], list[float]] = defaultdict(list)
    for label in labels:
        passed = label.passed if label.passed is not None else (label.score or 0.0) >= _MIDDLE
        said[label.unit, label.metric].append(float(passed))
    for (unit, metric), votes in said.items():
        if fmean(votes) != _MIDDLE:
            yield Verdict(unit, metric, PEOPLE, fmean(votes) < _MIDDLE)


def of_judges(connection: sqlite3.Connection, metric: str) -> Iterator[Verdict]:
    """What judges said under one metric (``level.name``)."""
    rows = connection.execute(
        """SELECT unit, model, passed, max(no) FROM judged WHERE metric = ? AND passed IS NOT NULL GROUP BY unit""",
        (metric,),
    )
    for unit, model, passed, _ in rows:
        yield Verdict(unit, metric, model, not passed)


def labelled_runs(
    connection: sqlite3.Connection, verdicts: Iterable[Verdict], agent: str | None = None
) -> list[LabelledRuns]:
    """The runs that verdicts are about, by agent; of each agent and level those of the metric with most verdicts. A run
    of which the store holds too little is left out. ``agent``: only of this one."""
    found: dict[tuple[str, str, str], LabelledRuns] = {}
    for verdict in verdicts:
        level = verdict.metric.partition(".")[0]
        members = [*_members(connection, level, verdict.unit)]
        courses = [course for course, *_ in members if course is not None]
        if not members or len(courses) < len(members) or level not in ("session", "trace"):
            continue
        name, user = members[-1][2], next((who for *_, who in members if who), "")
        if agent is not None and name != agent:
            continue
        runs = found.setdefault(
            (level, name, verdict.metric), LabelledRuns(level, name, verdict.source, verdict.metric)
        )
        runs.units.append(verdict.unit)
        scores = [scores for _, scores, *_ in members] if level == "session" else []
        runs.rows.append(session_features(courses, scores))
        runs.bad.append(verdict.bad)
        runs.groups.append(user or verdict.unit)
    return _largest(found.values())


def _largest(runs: Iterable[LabelledRuns]) -> list[LabelledRuns]:
    best: dict[tuple[str, str], LabelledRuns] = {}
    for each in runs:
        there = best.get((each.level, each.agent))
        if there is None or len(there.units) < len(each.units):
            best[each.level, each.agent] = each
    return [best[key] for key in sorted(best)]


def _members(
    connection: sqlite3.Connection, level: str, unit: str
) -> Iterator[tuple[Course | None, Features, str, str]]:
    """Of each trace of a unit in order: how it went, its rules' scores, its agent and its user."""
    where = (
        "members.session = (SELECT no FROM sessions WHERE session_id = ?)"
        if level == "session"
        else "members.session IS NULL AND members.no = (SELECT no FROM traces WHERE trace_id = ?)"
    )
    rows = connection.execute(
        f"SELECT body FROM members WHERE {where} ORDER BY start_ns",  # noqa: S608
        (unit if level == "session" else bytes.fromhex(unit),),
    )
    for (body,) in rows:
        facts = orjson.loads(body)
        signals = facts["signals"]
        scores = {name: signals[name]["value"] for name in RULES if name in signals}
        known = {name: value for name, value in scores.items() if value is not None}
        yield Course.unpack(facts.get("course")), known, facts["agent"], ""
