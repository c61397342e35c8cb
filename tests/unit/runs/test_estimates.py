"""Limited number of waiting estimates."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.store import Store
from pandaeval_collector.store.runs import FullError
from support.evaluation_runs import evaluation_runs


async def test_at_most_eight_concurrent_estimates_are_accepted(tmp_path: Path) -> None:
    spec = RunSpec(("trace.tool_loop",))
    with closing(Store(tmp_path)) as store:
        runs = evaluation_runs(store)
        outcomes = await asyncio.gather(*(runs.dry(spec) for _ in range(20)), return_exceptions=True)
        assert [type(each) for each in outcomes] == [CostEstimate] * 8 + [FullError] * 12
        assert isinstance(await runs.dry(spec), CostEstimate)
