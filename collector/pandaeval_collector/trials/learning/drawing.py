"""Draws sessions for people to label, so that both the rate of problems and the problem score gain by it.

Half of the wish is spread evenly, half lies on sessions of which the present model is unsure; without a model all are
wished for alike. The rate comes of those alone that the even half draws, each with the same known chance: what the
model is unsure of depends on the labels that it has seen, and chances that follow from it would bend the rate.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.analysis.stats.problem_features import Course, session_features
from pandaeval_collector.store import JudgedRow, people
from pandaeval_collector.trials.learning.labelled_runs import LabelledRuns, StoredSessions, rule_scores
from pandaeval_collector.trials.learning.models import kept

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
