"""Long sessions are read incrementally, with equal results."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import pandaeval_collector.pipeline.line.sessions as sessions_module
from pandaeval_collector.store import StoreReader
from pandaeval_otel.model import Trigger
from support.line import RunningPipeline, cut, in_session
from support.made_traces import Composer, MadeTrace

QUIET = 11.0


async def said(
    folder: Path, traces: list[MadeTrace], seed: int, near: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return results of traces decided in small groups."""
    monkeypatch.setattr(sessions_module, "_NEAR", near)
    chance = random.Random(seed)
    async with RunningPipeline(folder) as line:
        late = []
        for trace in traces:
            first, *rest = cut(trace, chance) if chance.random() < 0.3 else [list(trace.spans)]
            await line.send(trace, first)
            late += [(trace, part) for part in rest]
            if late and chance.random() < 0.3:
                await line.send(*late.pop(chance.randrange(len(late))))
            if chance.random() < 0.3:
                await line.wait(chance.choice([2.0, QUIET, 200.0]))
        for trace, part in late:
            await line.send(trace, part)
        await line.settle()
        return [
            {key: value for key, value in each.items() if key not in ("time", "duration_ms")}
            for each in sorted(line.results(), key=lambda each: (each["level"], each["trace_id"], each["metric"]))
        ]


@pytest.mark.parametrize("seed", range(4))
async def test_reading_only_the_newest_traces_gives_the_results_of_reading_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    composer, chance = Composer(seed), random.Random(seed)
    traces = [in_session(composer.trace(spans=3), "long") for _ in range(70)]
    for _ in range(10):
        at = chance.randrange(len(traces) - 3)
        traces[at], traces[at + 2] = traces[at + 2], traces[at]
    whole = await said(tmp_path / "all", traces, seed, (10**9,), monkeypatch)
    assert sum(each["level"] == "trace" for each in whole) > 70
    assert await said(tmp_path / "near", traces, seed, (2, 6), monkeypatch) == whole


async def test_a_new_trace_of_a_long_session_usually_reads_only_the_newest_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    read_all, read_newest = StoreReader.session_traces, StoreReader.newest_traces

    def all_watched(store: StoreReader, session_id: str) -> Any:
        asked.append(-1)
        return read_all(store, session_id)

    def newest_watched(store: StoreReader, session_ids: Collection[str], newest: int) -> Any:
        asked.append(newest)
        return read_newest(store, session_ids, newest)

    monkeypatch.setattr(StoreReader, "session_traces", all_watched)
    monkeypatch.setattr(StoreReader, "newest_traces", newest_watched)
    monkeypatch.setattr(sessions_module, "_NEAR", (8,))
    composer = Composer(7)
    traces = [in_session(composer.trace(spans=3), "long") for _ in range(60)]
    async with RunningPipeline(tmp_path) as line:
        for trace in traces:
            await line.send(trace)
        await line.pipeline.close_all(Trigger.ROOT_ENDED)
        asked.clear()
        more = [in_session(composer.trace(spans=3), "long") for _ in range(12)]
        for trace in more:
            await line.send(trace)
            await line.wait(QUIET)
        positions = [
            comparison["trace_index"]
            for trace in more
            for result in line.of(trace, "loop_detection")
            for comparison in result["metadata"].get("comparisons", ())
        ]
    assert asked.count(8) > asked.count(-1)
    assert max(positions) > 50
