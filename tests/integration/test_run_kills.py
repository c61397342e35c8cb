"""Killed evaluation runs resume without double payment."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.run_kills import killed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_that_is_killed_ten_times_ends_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    found = killed(tmp_path, traces=200, kills=10, seed=3)
    assert found.kills == 10
    assert found.residual == 0
    assert found.repeated <= found.allowed


@pytest.mark.slow
def test_a_run_that_is_killed_once_goes_on(tmp_path: Path) -> None:
    found = killed(tmp_path, traces=60, kills=1, seed=4)
    assert found.kills == 1
    assert found.residual == 0
    assert found.repeated <= found.allowed
