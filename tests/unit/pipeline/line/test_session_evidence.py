"""Evidence from earlier traces of the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES
from support.ferry_desk import (
    FIRST,
    INVENTED,
    INVENTS,
    KNOWN,
    REPEATS,
    SECOND,
    grounding,
    trace,
)
from support.line import RunningLine, as_file
from support.two_lines import QUIET, two

_MS = 10**6


@pytest.mark.parametrize("restart", [False, True])
async def test_a_value_of_an_earlier_result_passes_and_an_invented_one_is_named(tmp_path: Path, restart: bool) -> None:
    traces = [FIRST, SECOND, REPEATS, INVENTS]
    async with RunningLine(tmp_path) as line:
        for each in traces:
            await line.send(each)
            await line.wait(QUIET)
            if restart:
                await line.restart()
        await line.settle()
        told, made_up = grounding(line, REPEATS), grounding(line, INVENTS)
        assert (told["score"], told["success"], told["coverage"]) == (1.0, True, 1.0)
        assert (made_up["score"], made_up["success"], made_up["label"]) == (0.0, False, "made_up_value")
        assert INVENTED in made_up["reason"]
        assert line.standing() == as_file(traces)


async def test_a_trace_that_comes_late_is_evidence_for_those_after_it(tmp_path: Path) -> None:
    async with RunningLine(tmp_path) as line:
        await line.send(REPEATS)
        await line.wait(QUIET)
        assert not grounding(line, REPEATS)["success"] if line.of(REPEATS, "grounding") else True
        await line.send(FIRST)
        await line.wait(QUIET)
        assert grounding(line, REPEATS)["success"]
        await line.settle()
        assert line.standing() == as_file([FIRST, REPEATS])


async def test_what_other_processes_understood_is_read_with_the_session_as_well(tmp_path: Path) -> None:
    async with RunningLine(tmp_path, workers=1) as line:
        for each in (FIRST, SECOND, INVENTS):
            await line.send(each)
        await line.wait(QUIET)
        assert INVENTED in grounding(line, INVENTS)["reason"]


async def test_an_owner_keeps_what_it_read_when_a_trace_is_handed_over_again(tmp_path: Path) -> None:
    """The sender lacked the earlier traces."""
    async with two(tmp_path) as both:
        await both.decide(FIRST, INVENTS)
        await both.owner.wait(1)
        await both.owner.adopt(both.handed)
        await both.owner.settle()
        assert grounding(both.owner, INVENTS)["score"] == 0.0
        assert both.standing() == as_file([FIRST, INVENTS])


async def test_a_result_that_was_not_captured_may_have_held_it(tmp_path: Path) -> None:
    async with RunningLine(tmp_path) as line:
        for each in (trace(1, "I looked.", captured=False), INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        found = grounding(line, INVENTS)
        assert (found["outcome"], found["success"]) == ("unscored", None)


@pytest.mark.parametrize(("chars", "outcome"), [(10_000, "scored"), (400_000, "unscored")])
async def test_what_is_kept_of_a_trace_is_capped(tmp_path: Path, chars: int, outcome: str) -> None:
    long = trace(1, "I looked.", result={"codes": [f"ZZ-{number}" for number in range(chars // 10)]})
    async with RunningLine(tmp_path) as line:
        for each in (long, INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        assert grounding(line, INVENTS)["outcome"] == outcome
        row = line.store.reads.left_behind([long.trace_id])[long.trace_id]
        assert row is not None
        assert len(row.answer) < 25_000


async def test_a_session_is_read_back_so_far_and_no_further(tmp_path: Path) -> None:
    between = [trace(2 + number, "With pleasure.", result={"ok": True}) for number in range(MOST_TRACES)]
    last = trace(100, f"You are on the {KNOWN}.")
    async with RunningLine(tmp_path) as line:
        for each in (FIRST, *between, last):
            await line.send(each)
        await line.wait(QUIET)
        assert grounding(line, last)["outcome"] == "unscored"
        await line.settle()
        assert line.standing() == as_file([FIRST, *between, last])
