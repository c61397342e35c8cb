"""Killed evaluation runs resume and repeat at most the judge calls in flight."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.run_kills import killed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_ten_times_ends_and_repeats_few_judge_calls(tmp_path: Path) -> None:
    found = killed(tmp_path, traces=200, kills=10, seed=3)
    assert found.kills == 10
    assert found.residual == 0
    assert found.repeated <= found.allowed


@pytest.mark.slow
def test_a_run_killed_once_continues_and_repeats_few_judge_calls(tmp_path: Path) -> None:
    found = killed(tmp_path, traces=60, kills=1, seed=4)
    assert found.kills == 1
    assert found.residual == 0
    assert found.repeated <= found.allowed
