"""Fail points."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pandaeval_collector
from pandaeval_collector.base.runtime.failpoints import (
    POINTS,
    VARIABLE,
    arm,
    lasting,
    reach,
    reach_over,
    reach_soon,
)


@pytest.fixture(autouse=True)
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return the intercepted signals."""
    signals: list[int] = []
    monkeypatch.setattr("pandaeval_collector.base.runtime.failpoints.os.kill", lambda _, number: signals.append(number))
    yield signals
    arm({})


def test_unarmed_fail_points_have_no_effect(killed: list[int]) -> None:
    """Calls before arming do not count."""
    arm({})
    for point in POINTS:
        reach(point)
    assert not killed
    arm({VARIABLE: "after_commit:1"})
    reach("after_commit")
    assert killed == [signal.SIGKILL]


def test_a_fail_point_fires_once_at_the_given_count(killed: list[int]) -> None:
    arm({VARIABLE: "after_commit:3, before_export:1"})
    reach("after_commit")
    reach("after_commit")
    reach("before_commit")
    assert not killed
    reach("after_commit")
    assert len(killed) == 1
    reach("after_commit")
    assert len(killed) == 1
    reach("before_export")
    assert len(killed) == 2


async def test_reach_soon_fires_a_little_later(killed: list[int]) -> None:
    arm({VARIABLE: "after_ack:1"})
    reach_soon("after_ack")
    assert not killed
    async with asyncio.timeout(60):
        while not killed:  # noqa: ASYNC110 - the point has no event to wait for
            await asyncio.sleep(0.001)


def test_a_fail_point_kills_the_process() -> None:
    script = """
from pandaeval_collector.base.runtime.failpoints import reach
reach("after_ack")
print("alive")
reach("after_ack")
print("still alive")
"""
    folder = str(Path(pandaeval_collector.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={VARIABLE: "after_ack:2", "PYTHONPATH": folder, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-9, "alive\n")


@pytest.mark.parametrize("wrong", ["after_lunch:1", "after_commit", "after_commit:x", "after_commit:1:explode", ":1"])
def test_an_invalid_fail_point_is_an_error(wrong: str) -> None:
    with pytest.raises(ValueError, match=VARIABLE):
        arm({VARIABLE: wrong})


def test_every_fail_point_is_used_in_the_code() -> None:
    files = Path(pandaeval_collector.__file__).parent.rglob("*.py")
    source = "".join(file.read_text() for file in files if file.name != "failpoints.py")
    assert set(re.findall(r'failpoints\.reach(?:_soon|_over)?\("(\w+)"[,)]', source)) == set(POINTS)


def test_a_fail_point_of_a_trace_fires_only_at_that_trace_and_lasts_over_restarts(killed: list[int]) -> None:
    value = "after_commit:3, over_trace=4BF9:2"
    arm({VARIABLE: value})
    reach_over("over_trace", "4bf900")
    reach_over("over_trace", "5bf900")
    assert not killed
    reach_over("over_trace", "4bf901")
    assert killed
    assert lasting(value).strip() == "over_trace=4BF9:2"
    assert lasting("after_commit:3") == lasting("") == ""
