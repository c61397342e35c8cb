"""Each kind of store damage; ``tests/lab/proofs/damage.py`` tries more."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from support.damaged import FILE, HARMS, STATES, Left, leave, try_one


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return leave(tmp_path_factory.mktemp("left"))


def seed_of(name: str) -> int:
    """Return the first seed with this damage."""
    for seed in range(1000):
        chance = random.Random(seed)
        chance.choice(STATES)
        if chance.choice([*HARMS]) == name:
            return seed
    raise AssertionError(name)


@pytest.mark.parametrize("name", [*HARMS])
def test_no_kind_of_store_damage_causes_a_wrong_score_or_a_silent_loss(left: Left, tmp_path: Path, name: str) -> None:
    tried, outcome = try_one(left, tmp_path, seed_of(name))
    assert tried.endswith(name)
    assert outcome.problems == []


def test_the_damage_check_reports_lost_spans_of_an_older_file(
    left: Left, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forged(data: Path, _: Left, __: random.Random) -> None:
        """Return a shorter, consistent file."""
        for each in data.iterdir():
            each.unlink()
        for each in (left.folder / "early").iterdir():
            shutil.copy(each, data)

    monkeypatch.setattr("support.damaged.HARMS", dict.fromkeys(HARMS, forged))
    late = next(seed for seed in range(100) if random.Random(seed).choice(STATES) == "late")
    _, outcome = try_one(left, tmp_path, late)
    assert (tmp_path / "data" / FILE).exists()
    assert any("acknowledged spans are gone" in each for each in outcome.problems)
