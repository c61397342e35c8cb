"""Batches of a run give the same scores as the live line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson

from pandaeval_collector.config import Config
from pandaeval_collector.runs.engine import RunSetup
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.runs import RunBatch
from pandaeval_lab.replay.estimates import Counted, estimate, sample_of
from pandaeval_lab.replay.run_process import BatchScorer
from support.line import RunningPipeline, Standing, ids_and_scores
from support.made_traces import Composer


async def _scored(
    line: RunningPipeline, folder: Path, batches: Sequence[Sequence[tuple[int, int]]], sessions: bool
) -> list[RunBatch]:
    (folder / "0").mkdir(parents=True)  # left behind by a killed process
    clock = line.store.clock
    setup = RunSetup(line.folder, clock, folder, Config(), frozenset(), 1, "r", sessions=sessions, emit=False)
    scorer = BatchScorer(setup, Evaluator(line.embedder, line.settings), line.store)
    return [(await asyncio.to_thread(scorer.score, batch))[0] for batch in batches]


def _items(store: Store) -> list[tuple[int, int]]:
    with_all = store.runs.chosen(Wanted(), 0, 1 << 62)[0]
    return [(no, session) for no, session, _, _ in with_all]


def _standing(found: Sequence[RunBatch]) -> Standing:
    return ids_and_scores([orjson.loads(row.body) for scored in found for row in scored.results])


async def test_any_split_into_batches_gives_the_live_results(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path / "live") as line:
        composer = Composer(11)
        for _ in range(30):
            await line.send(composer.trace())
        await line.settle()
        items = _items(line.store)
        assert len(items) == 30
        assert {session for _, session in items} > {0}
        live = line.standing()
        whole = await _scored(line, tmp_path / "a", [items], sessions=True)
        assert _standing(whole) == live
        groups = [[each for each in items if each[1] == session] for session in sorted({s for _, s in items})]
        apart = await _scored(line, tmp_path / "b", groups, sessions=True)
        assert _standing(apart) == live
        single = await _scored(line, tmp_path / "c", [[item] for item in items], sessions=False)
        assert _standing(single) == {key: each for key, each in live.items() if not key[1].startswith("session.")}
        assert all(why == "" for scored in single for _, why in scored.items)


async def test_a_trace_that_is_no_longer_stored_fails_as_gone(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path / "live") as line:
        await line.send(Composer(12).trace())
        await line.settle()
        ((no, session),) = _items(line.store)
        (scored,) = await _scored(line, tmp_path / "a", [[(no, session), (no + 1000, 0)]], sessions=False)
        assert dict(scored.items) == {no: "", no + 1000: "gone"}


def test_an_estimate_extrapolates_from_a_sample_of_whole_sessions() -> None:
    chosen = [(no, no % 40) for no in range(1, 1001)]
    taken = sample_of(chosen)
    assert 150 <= len(taken) <= 200
    assert taken == sample_of(chosen)
    sessions = {session for _, session in taken if session}
    assert sorted(taken) == sorted((no, s) for no, s in chosen if s in sessions or (no, s) in taken)
    counted = Counted({"m": (len(taken), 1000 * len(taken), 100 * len(taken))})
    known = estimate(chosen, counted, len(taken), {"m": (1e-6, 1e-5)})
    assert (known.traces, known.calls, known.prompt_tokens) == (1000, 1000, 1_000_000)
    assert known.cost_usd == 2.0
    assert estimate(chosen, counted, len(taken), {}).cost_usd is None
