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
from support.line import RunningPipeline, as_file
from support.two_lines import QUIET, two

_MS = 10**6


@pytest.mark.parametrize("restart", [False, True])
async def test_a_value_of_an_earlier_trace_passes_and_a_fabricated_value_is_named(
    tmp_path: Path, restart: bool
) -> None:
    traces = [FIRST, SECOND, REPEATS, INVENTS]
    async with RunningPipeline(tmp_path) as line:
        for each in traces:
            await line.send(each)
            await line.wait(QUIET)
            if restart:
                await line.restart()
        await line.settle()
        repeated, made_up = grounding(line, REPEATS), grounding(line, INVENTS)
        assert (repeated["score"], repeated["success"], repeated["coverage"]) == (1.0, True, 1.0)
        assert (made_up["score"], made_up["success"], made_up["label"]) == (0.0, False, "made_up_value")
        assert INVENTED in made_up["reason"]
        assert line.standing() == as_file(traces)


async def test_a_late_trace_is_evidence_for_the_traces_after_it(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        await line.send(REPEATS)
        await line.wait(QUIET)
        assert grounding(line, REPEATS)["success"] is False
        await line.send(FIRST)
        await line.wait(QUIET)
        assert grounding(line, REPEATS)["success"]
        await line.settle()
        assert line.standing() == as_file([FIRST, REPEATS])


async def test_traces_scored_by_a_worker_process_are_compared_with_their_session(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path, workers=1) as line:
        for each in (FIRST, SECOND, INVENTS):
            await line.send(each)
        await line.wait(QUIET)
        assert INVENTED in grounding(line, INVENTS)["reason"]


async def test_an_owner_keeps_its_grounding_result_if_a_trace_is_handed_over_again(tmp_path: Path) -> None:
    """The sender lacked the earlier traces."""
    async with two(tmp_path) as both:
        await both.decide(FIRST, INVENTS)
        await both.owner.wait(1)
        await both.owner.adopt(both.handed)
        await both.owner.settle()
        assert grounding(both.owner, INVENTS)["score"] == 0.0
        assert both.standing() == as_file([FIRST, INVENTS])


async def test_grounding_is_unscored_if_an_earlier_tool_result_was_not_captured(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in (trace(1, "I looked.", captured=False), INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        found = grounding(line, INVENTS)
        assert (found["outcome"], found["success"]) == ("unscored", None)


@pytest.mark.parametrize(("chars", "outcome"), [(10_000, "scored"), (400_000, "unscored")])
async def test_the_evidence_stored_per_trace_is_capped(tmp_path: Path, chars: int, outcome: str) -> None:
    long = trace(1, "I looked.", result={"codes": [f"ZZ-{number}" for number in range(chars // 10)]})
    async with RunningPipeline(tmp_path) as line:
        for each in (long, INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        assert grounding(line, INVENTS)["outcome"] == outcome
        row = line.store.reads.left_behind([long.trace_id])[long.trace_id]
        assert row is not None
        assert len(row.answer) < 25_000


async def test_only_a_limited_number_of_earlier_traces_is_evidence(tmp_path: Path) -> None:
    between = [trace(2 + number, "With pleasure.", result={"ok": True}) for number in range(MOST_TRACES)]
    last = trace(100, f"You are on the {KNOWN}.")
    async with RunningPipeline(tmp_path) as line:
        for each in (FIRST, *between, last):
            await line.send(each)
        await line.wait(QUIET)
        assert grounding(line, last)["outcome"] == "unscored"
        await line.settle()
        assert line.standing() == as_file([FIRST, *between, last])
