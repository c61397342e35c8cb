"""Fits problem scores on labelled runs, and keeps them as files that a collector reads."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.analysis.stats.problem_features import Course, session_features
from pandaeval_collector.analysis.stats.problem_model import HeldOutFigures, learn
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.store import JudgedRow, people
from pandaeval_collector.trials.labels.files import save
from pandaeval_collector.trials.learning.labelled_runs import LabelledRuns, StoredSessions, rule_scores

FOLDER = "learned"
"""Below the data directory."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def learned(runs: LabelledRuns) -> tuple[LearnedModel | None, HeldOutFigures]:
    """A model of the runs, and how well one like it does on runs that it has not seen; no model where
    :attr:`HeldOutFigures.refusal` says why."""
    model, evidence = learn(runs.rows, runs.bad, runs.groups)
    if model is None or evidence.refusal:
        return None, evidence
    return LearnedModel(runs.level, runs.agent, runs.source, runs.metric, model, evidence), evidence


def file_of(folder: Path, level: str, agent: str) -> Path:
    """Where the model of an agent is kept."""
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
    """The model of an agent; ``None`` where there is none that can be read."""
    try:
        return LearnedModel.of_json(file_of(folder, level, agent).read_bytes())
    except (OSError, ValueError):
        return None


# Draws sessions for people to label, so that both the rate of problems and the problem score gain by it.
#
# Half of the wish is spread evenly, half lies on sessions of which the present model is unsure; without a model all are
# wished for alike. The rate comes of those alone that the even half draws, each with the same known chance: what the
# model is unsure of depends on the labels that it has seen, and chances that follow from it would bend the rate.
PROBLEM = "session.problem"
MOST_SESSIONS = 10_000
"""The newest ones that are drawn from."""
_UNSURE = 0.5


def metric_of_sessions(connection: sqlite3.Connection) -> str:
    """The metric of sessions that most labels are about: what a problem score is learned from."""
    counted = Counter(each.metric for each in people.labels(connection) if each.metric.startswith("session."))
    return counted.most_common(1)[0][0] if counted else PROBLEM


def sessions_to_label(
    connection: sqlite3.Connection, metric: str, agent: str, folder: Path
) -> list[tuple[JudgedRow, bool]]:
    """The newest sessions of an agent (``""``: of all) with the score of what was learned of it (one half where nothing
    was), and whether somebody labelled them."""
    labelled = {each.unit for each in people.labels(connection) if each.metric == metric}
    models: dict[str, LearnedModel | None] = {}
    runs, found = StoredSessions(connection), []
    names = connection.execute("SELECT session_id FROM sessions ORDER BY no DESC LIMIT ?", (MOST_SESSIONS,)).fetchall()
    for (unit,) in names:
        facts = runs.facts("session", unit)
        if not facts or agent not in ("", facts[-1]["agent"]):
            continue
        name = facts[-1]["agent"]
        if name not in models:
            models[name] = kept(folder, "session", name)
        score = _score(models[name], facts)
        row = JudgedRow(unit, metric, unit, name, score, None, _UNSURE, "", "", 1.0)
        found.append((row, unit in labelled))
    return found


def _score(model: LearnedModel | None, facts: Sequence[Mapping[str, Any]]) -> float:
    courses = [course for each in facts if (course := Course.unpack(each.get("course"))) is not None]
    if model is None or len(courses) < len(facts):
        return _UNSURE
    row = session_features(courses, [rule_scores(each["signals"]) for each in facts])
    return 1.0 - model.model.probability(row)


def drawn_labels(runs: LabelledRuns) -> tuple[list[bool], list[float]]:
    """Of the labelled runs that were drawn: whether each was bad, and its chance."""
    pairs = [(bad, chance) for bad, chance in zip(runs.bad, runs.chances, strict=True) if chance is not None]
    return [bad for bad, _ in pairs], [chance for _, chance in pairs]
