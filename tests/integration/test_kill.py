"""Kill -9 under load loses no acknowledged span; ``tests/lab/proofs/kill.py`` runs longer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.kills import of_workers, run

KILLS = ["after_ack:14", "before_decide:1"]
"""Kills at fail points, too few to quarantine a trace (``pipeline/underway.py``)."""


def test_no_acknowledged_span_is_lost_if_the_collector_is_killed(tmp_path: Path) -> None:
    figures = run(tmp_path, 7, KILLS, pause=0.03)

    assert figures.problems == []
    assert figures.cycles == len(KILLS)
    assert figures.acknowledged > 2 * 14
    assert sum(figures.points.values()) >= len(KILLS) - 1
    assert figures.redelivered > 0, "no result was sent again, so the recovery was not tested"


@pytest.mark.slow  # fast variant: tests/integration/test_workers.py
def test_no_span_is_lost_and_no_result_repeated_if_scoring_workers_are_killed(tmp_path: Path) -> None:
    kills = [*of_workers(1, random.Random(11)), "in_worker:1", "after_decide:3"]

    figures = run(tmp_path, 11, kills, pause=0.03, workers=1)

    assert figures.problems == []
    assert (figures.points["worker"], figures.points["in_worker"]) == (1, 1)
    assert figures.acknowledged > 2 * 14
