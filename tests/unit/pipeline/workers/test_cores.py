"""How many processes ``line.workers: auto`` comes to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pandaeval_collector.runs.front as front_module
from pandaeval_collector.base.runtime.cores import usable_cores
from pandaeval_collector.config import Config, LineSection
from pandaeval_collector.runs.front import MOST_WORKERS, workers

HERE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", HERE),
        ("50000 100000\n", 1),
        ("199999 100000\n", 1),
        (f"{HERE * 100_000 + 5_000_000} 100000\n", HERE),
        ("", HERE),
    ],
)
def test_what_a_container_is_limited_to_counts(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == cores


def test_without_a_limit_all_cores_count(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "cpu.max") == HERE


@pytest.mark.parametrize(("cores", "number"), [(1, 1), (2, 2), (64, MOST_WORKERS)])
def test_auto(monkeypatch: pytest.MonkeyPatch, cores: int, number: int) -> None:
    monkeypatch.setattr(front_module, "usable_cores", lambda: cores)
    assert workers(Config(line=LineSection(workers="auto"))) == number
    assert workers(Config(line=LineSection(workers=5))) == 5
    assert workers(Config()) == 1
