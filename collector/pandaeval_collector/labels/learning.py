"""Learns problem scores from labels: gathers runs that have one, fits a model for each agent, keeps it in a file."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.analysis.stats.problem_features import RULES, Course, session_features
from pandaeval_collector.analysis.stats.problem_model import LEAST_LABELS, HeldOutFigures, learn
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.labels.calibration import word_of_most
from pandaeval_collector.labels.files import save
from pandaeval_collector.store import Store, people
from pandaeval_otel.wire.labels import HumanLabel

PEOPLE = "people"
LEVELS = ("session", "trace")


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


class ReadableRuns(Protocol):
    """A source of runs: their facts and users."""

    def facts(self, level: str, unit: str) -> Sequence[Mapping[str, Any]]:
        """Returns the facts that the traces of a unit left, in order (see
        :class:`pandaeval_collector.pipeline.line.facts.TraceFacts`); none for an unknown unit."""
        ...

    def user(self, level: str, unit: str) -> str:
        """Returns the user of a unit; ``""`` where that is not known."""
        ...


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


def labelled_runs(runs: ReadableRuns, verdicts: Iterable[RunVerdict], agent: str | None = None) -> list[LabelledRuns]:
    """Gathers the runs that have verdicts; for each agent and level, under the metric with the most. Leaves out runs
    that are unknown or were decided by an older version. ``agent``: only runs of this agent."""
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
        its.groups.append(runs.user(verdict.level, verdict.unit) or verdict.unit)
    best: dict[tuple[str, str], LabelledRuns] = {}
    for its in sorted(found.values(), key=lambda its: -len(its.rows)):
        best.setdefault((its.level, its.agent), its)
    return [best[key] for key in sorted(best)]


def rule_scores(signals: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Returns the scores, among a trace's signals, of the rules that features are made of."""
    values = {name: signals[name]["value"] for name in RULES if name in signals}
    return {name: value for name, value in values.items() if value is not None}


class StoredSessions:
    """Reads the facts of a store's sessions; the store keeps none of traces without a session."""

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


FOLDER = "learned"
"""The folder of models below the data directory."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def learned(runs: LabelledRuns) -> tuple[LearnedModel | None, HeldOutFigures]:
    """Fits a model to the runs, and measures it on runs held out; no model where :attr:`HeldOutFigures.refusal` says
    why."""
    model, evidence = learn(runs.rows, runs.bad, runs.groups)
    if model is None or evidence.refusal:
        return None, evidence
    return LearnedModel(runs.level, runs.agent, runs.source, runs.metric, model, evidence), evidence


def file_of(folder: Path, level: str, agent: str) -> Path:
    """Returns the path of an agent's model."""
    return folder / f"{level}-{_UNSAFE.sub('_', agent)[:80] or 'unnamed'}.json"


def keep(folder: Path, model: LearnedModel) -> Path:
    """Writes the model in place of an earlier one of its agent. Raises ``UserError`` where it cannot be written."""
    path = file_of(folder, model.level, model.agent)
    beside = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save(beside, model.to_json())
        beside.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def kept(folder: Path, level: str, agent: str) -> LearnedModel | None:
    """Reads the model of an agent; returns ``None`` where there is none that can be read."""
    try:
        return LearnedModel.of_json(file_of(folder, level, agent).read_bytes())
    except (OSError, ValueError):
        return None


# Learns in a running collector, as soon as an agent has labels enough, and says when a model has become old.
#
# A model that is there is never replaced: :class:`Learning` proposes, and ``pandaeval learn`` does it.
_log = logging.getLogger(__name__)

GROWN = 1.5
"""A model is old when there are so many times more labels than it was learned from."""
DRIFTED = 0.15
"""A model is also old when its share of problems among the labelled runs is off by more than this."""
_NAME = "pandaeval.learned"


class Learning:
    """Checks, while there are labels, whether a model can be learned or is old. On one event loop."""

    def __init__(self, store: Store, folder: Path, telemetry: Telemetry) -> None:
        self._store, self._folder = store, folder
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._seen: dict[tuple[str, str], int] = {}
        telemetry.family(lambda: self._shown)

    async def look(self) -> None:
        """Looks at the labels once."""
        self._shown = await asyncio.to_thread(self._look)

    def _look(self) -> dict[tuple[str, Attributes], float]:
        if not self._store.people.has_labels():
            return {}
        with self._store.reads.snapshot():
            connection = self._store.reads.connection()
            found = labelled_runs(StoredSessions(connection), of_people(people.labels(connection)))
        shown: dict[tuple[str, Attributes], float] = {}
        for runs in found:
            attributes = (("gen_ai.agent.name", runs.agent), ("pandaeval.level", runs.level))
            values = {"labels": float(len(runs.rows)), "proposed": float(self._look_after(runs))}
            model = kept(self._folder, runs.level, runs.agent)
            if model is not None and model.evidence.same_length is not None:
                values["auroc"] = model.evidence.same_length.value
            shown |= {(f"{_NAME}.{name}", attributes): value for name, value in values.items()}
        return shown

    def _look_after(self, runs: LabelledRuns) -> bool:
        """Learns a model where there is none yet; returns whether the present one is old and a new one proposed."""
        model, key = kept(self._folder, runs.level, runs.agent), (runs.level, runs.agent)
        if model is not None:
            stated = sum(map(model.model.probability, runs.rows)) / len(runs.rows)
            drift = abs(stated - sum(runs.bad) / len(runs.bad))
            return len(runs.rows) >= GROWN * model.evidence.labels or drift > DRIFTED
        if len(runs.rows) >= LEAST_LABELS and len(runs.rows) != self._seen.get(key):
            self._seen[key] = len(runs.rows)
            made, evidence = learned(runs)
            if made is None:
                _log.info("agent %r: no problem score was learned: %s", runs.agent, evidence.refusal)
            else:
                path = keep(self._folder, made)
                _log.info(
                    "agent %r: a problem score was learned from %d labels (AUROC among equally long runs %s): %s",
                    *(runs.agent, evidence.labels, evidence.same_length, path),
                )
        return False
