"""Kill -9 at the worst moments, under load by three doors, with a sink that fails: nothing acknowledged is lost.

The long version is ``tests/proofs/kill.py``.
"""

from __future__ import annotations

import random
from pathlib import Path

from support.kills import FAIL_POINTS, at_fail_points, at_random_times, of_workers, run

SOME = 6
"""Of the ten fail points; the proof has all of them, hundreds of times."""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    chance = random.Random(7)
    kills = at_fail_points(len(FAIL_POINTS), chance)[:SOME] + at_random_times(1, chance)

    figures = run(tmp_path, 7, kills, pause=0.03)

    assert figures.problems == []
    assert figures.cycles == len(kills)
    assert figures.acknowledged > 100
    assert sum(count for point, count in figures.points.items() if point in FAIL_POINTS) >= SOME - 2
    assert figures.redelivered > 0, "nothing was sent twice, so the way after a crash was not tried"


def test_nothing_is_lost_or_said_twice_when_processes_of_the_line_are_killed(tmp_path: Path) -> None:
    """And in the end the collector with them."""
    chance = random.Random(11)
    kills = [*of_workers(1, chance), "in_worker:1", "after_decide:3"]

    figures = run(tmp_path, 11, kills, pause=0.03, workers=1)

    assert figures.problems == []
    assert (figures.points["worker"], figures.points["in_worker"]) == (1, 1)
    assert figures.acknowledged > 100
