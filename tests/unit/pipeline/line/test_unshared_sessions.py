"""Collectors without shared sessions agree on each trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.ferry_desk import FIRST, INVENTED, INVENTS, REPEATS, SECOND, grounding
from support.line import RunningPipeline
from support.made_traces import Composer, MadeTrace
from support.two_lines import QUIET, UNSHARED

_ACROSS = "loop_detection"
"""A metric that only compares traces."""
_COMPOSER = Composer(35)
MANY = [_COMPOSER.trace() for _ in range(60)]
Ids = dict[tuple[str, str, str], set[str]]


@pytest.mark.parametrize(
    "traces", [pytest.param([FIRST, SECOND, REPEATS, INVENTS], id="values"), pytest.param(MANY, id="many")]
)
async def test_a_collector_with_half_of_the_traces_gives_the_same_results_for_them(
    tmp_path: Path, traces: Sequence[MadeTrace]
) -> None:
    whole, half = await _said(tmp_path / "all", traces), await _said(tmp_path / "half", traces[1::2])
    assert {trace_id for trace_id, *_ in half} == {each.trace_id.hex() for each in traces[1::2]}
    assert all(len(ids) == 1 for ids in whole.values())
    assert half.items() <= whole.items()


async def test_a_fabricated_value_is_unscored_if_another_collector_may_have_its_source(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path, settings=UNSHARED) as line:
        for each in (FIRST, INVENTS):
            await line.send(each)
        await line.wait(QUIET)
        [found] = line.of(INVENTS, "grounding")
        assert (found["outcome"], found["why"]) == ("unscored", "insufficient_evidence")
        assert INVENTED in found["reason"]
        assert grounding(line, FIRST)["score"] == 1.0


async def _said(folder: Path, traces: Sequence[MadeTrace]) -> Ids:
    """Return all result IDs, trace by trace."""
    found: Ids = defaultdict(set)
    async with RunningPipeline(folder, settings=UNSHARED) as line:
        for each in traces:
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        for result in line.results():
            if result["metric"] != _ACROSS:
                found[result["trace_id"], result["span_id"], f"{result['level']}.{result['metric']}"].add(result["id"])
    return dict(found)
