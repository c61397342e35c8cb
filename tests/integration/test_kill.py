"""Kill -9 under load loses no acknowledged span; ``tests/lab/proofs/kill.py`` runs longer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.kills import of_workers, run

KILLS = ["after_ack:14", "before_decide:1"]
"""Kills at fail points, too few to quarantine a trace (``pipeline/underway.py``)."""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    figures = run(tmp_path, 7, KILLS, pause=0.03)

    assert figures.problems == []
    assert figures.cycles == len(KILLS)
    assert figures.acknowledged > 2 * 14
    assert sum(figures.points.values()) >= len(KILLS) - 1
    assert figures.redelivered > 0, "nothing was sent twice, so the way after a crash was not tried"


@pytest.mark.slow  # tests/integration/test_workers.py kills them within one process of tests
def test_nothing_is_lost_or_said_twice_when_processes_of_the_line_are_killed(tmp_path: Path) -> None:
    kills = [*of_workers(1, random.Random(11)), "in_worker:1", "after_decide:3"]

    figures = run(tmp_path, 11, kills, pause=0.03, workers=1)

    assert figures.problems == []
    assert (figures.points["worker"], figures.points["in_worker"]) == (1, 1)
    assert figures.acknowledged > 2 * 14
