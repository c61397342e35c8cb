"""A store with judged runs and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pandaeval_collector.store import JudgedRow, Store, WriteSet
from pandaeval_otel.wire.labels import HumanLabel

METRIC, JUDGE = "trace.task_completion", "openai/small"


def unit(number: int) -> str:
    return f"{number + 1:032x}"


def judged_row(number: int, score: float, agent: str = "helper", probability: float = 1.0) -> JudgedRow:
    return JudgedRow(unit(number), METRIC, "", agent, score, score >= 0.5, 0.5, JUDGE, "4", probability)


def flattered(runs: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (two thirds pass) and lenient scores."""
    draw = np.random.default_rng(seed)
    people = draw.random(runs) < 2 / 3
    return people, np.clip(np.where(people, 0.85, 0.6) + draw.normal(0, 0.1, runs), 0, 1)


def filled(folder: Path, runs: int = 400, labelled: int = 120, agent: str = "helper") -> Store:
    """Store runs of an agent, with the first labelled."""
    store = Store(folder, "off")
    people, scores = flattered(runs)
    store.commit(WriteSet(judged=[judged_row(at, float(score), agent) for at, score in enumerate(scores)])).result()
    chance = max(labelled, 1) / runs
    labels = [HumanLabel(unit(at), METRIC, None, bool(people[at]), "ada", probability=chance) for at in range(labelled)]
    store.people.put(labels, 1_700_000_000.0).result()
    return store
