"""Fail points: armed by a variable, met at the right time, and nothing at all otherwise."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pandaeval_collector
from pandaeval_collector.base.runtime.failpoints import (
    POINTS,
    VARIABLE,
    FailPointError,
    arm,
    lasting,
    reach,
    reach_over,
    reach_soon,
)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm({})


def test_nothing_happens_when_nothing_is_armed() -> None:
    """Nothing is raised, and no process ends: what is armed afterwards counts its passages from then on."""
    arm({})
    for point in POINTS:
        reach(point)
    arm({VARIABLE: "after_commit:1:raise"})
    with pytest.raises(FailPointError):
        reach("after_commit")


def test_it_fires_once_at_the_given_passage() -> None:
    arm({VARIABLE: "after_commit:3:raise, before_export:1:raise"})
    reach("after_commit")
    reach("after_commit")
    reach("before_commit")
    with pytest.raises(FailPointError, match="after_commit"):
        reach("after_commit")
    reach("after_commit")
    with pytest.raises(FailPointError, match="before_export"):
        reach("before_export")


async def test_soon_is_a_little_later(monkeypatch: pytest.MonkeyPatch) -> None:
    arm({VARIABLE: "after_ack:1:delay=0.25"})
    slept: list[float] = []
    monkeypatch.setattr("pandaeval_collector.base.runtime.failpoints.time.sleep", slept.append)
    reach_soon("after_ack")
    assert slept == []
    async with asyncio.timeout(60):
        while not slept:  # noqa: ASYNC110 - the point has no event to wait for
            await asyncio.sleep(0.001)
    assert slept == [0.25]


def test_it_kills() -> None:
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
def test_what_is_not_understood_is_an_error(wrong: str) -> None:
    with pytest.raises(ValueError, match=VARIABLE):
        arm({VARIABLE: wrong})


def test_every_point_stands_in_the_code() -> None:
    files = Path(pandaeval_collector.__file__).parent.rglob("*.py")
    source = "".join(file.read_text() for file in files if file.name != "failpoints.py")
    assert set(re.findall(r'failpoints\.reach(?:_soon|_over)?\("(\w+)"[,)]', source)) == set(POINTS)


def test_one_about_a_trace_is_met_at_that_trace_alone_and_again_in_the_next_process() -> None:
    value = "after_commit:3, over_trace=4BF9:2:raise"
    arm({VARIABLE: value})
    reach_over("over_trace", "4bf900")
    reach_over("over_trace", "5bf900")
    with pytest.raises(FailPointError, match="over_trace"):
        reach_over("over_trace", "4bf901")
    assert lasting(value).strip() == "over_trace=4BF9:2:raise"
    assert lasting("after_commit:3") == lasting("") == ""
