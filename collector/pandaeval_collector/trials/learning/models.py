"""Fits problem scores on labelled runs, and keeps them as files that a collector reads."""

from __future__ import annotations

import re
from pathlib import Path

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.analysis.stats.problem_model import HeldOutFigures, learn
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.trials.labels.writing import save
from pandaeval_collector.trials.learning.labelled_runs import LabelledRuns

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
