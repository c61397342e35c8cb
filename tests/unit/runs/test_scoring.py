"""A batch of a run says what the live line said: scored from stored contents, in any cut, with the same ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import orjson

from pandaeval_collector.runs.manager import extrapolated, some
from pandaeval_collector.runs.process import CallCount, RunSetup, Scored
from pandaeval_collector.runs.worker import Scoring, SharedVerdicts
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store, StoreReader
from pandaeval_collector.store.listed import Wanted
from support.asked import ScriptedCaller
from support.line import RunningLine, Standing, ids_and_scores
from support.made_traces import Composer


async def _scored(
    line: RunningLine, folder: Path, batches: Sequence[Sequence[tuple[int, int]]], sessions: bool
) -> list[Scored]:
    live = StoreReader(line.folder)
    (folder / "0").mkdir(parents=True)  # what a process that was killed left behind
    setup = RunSetup(line.folder, folder, "", line.settings, None, "r", sessions=sessions)
    scoring = Scoring(setup, Evaluator(line.embedder, line.settings), live, ScriptedCaller({}), _verdicts(live))
    found = [await asyncio.to_thread(scoring.of, batch) for batch in batches]
    live.close()
    return found


def _verdicts(live: StoreReader) -> SharedVerdicts:
    return SharedVerdicts(live, lambda key, body: Future())


def _items(store: Store) -> list[tuple[int, int]]:
    with_all = store.runs.chosen(Wanted(), 0, 1 << 62)[0]
    return [(no, session) for no, session, _, _ in with_all]


def _standing(found: Sequence[Scored]) -> Standing:
    return ids_and_scores([orjson.loads(row.body) for scored in found for row in scored.results])


async def test_any_cut_of_the_traces_gives_the_live_results(tmp_path: Path) -> None:
    async with RunningLine(tmp_path / "live") as line:
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


async def test_what_is_not_kept_has_failed(tmp_path: Path) -> None:
    async with RunningLine(tmp_path / "live") as line:
        await line.send(Composer(12).trace())
        await line.settle()
        ((no, session),) = _items(line.store)
        (scored,) = await _scored(line, tmp_path / "a", [[(no, session), (no + 1000, 0)]], sessions=False)
        assert dict(scored.items) == {no: "", no + 1000: "gone"}


def test_a_part_stands_for_the_whole() -> None:
    chosen = [(no, no % 40) for no in range(1, 1001)]
    taken = some(chosen)
    assert 150 <= len(taken) <= 200
    assert taken == some(chosen)
    sessions = {session for _, session in taken if session}
    assert sorted(taken) == sorted((no, s) for no, s in chosen if s in sessions or (no, s) in taken)
    counted = CallCount()
    for _ in taken:
        counted.add("m", 1000, 100)
    estimate = extrapolated(chosen, counted, len(taken), {"m": (1e-6, 1e-5)})
    assert (estimate.traces, estimate.calls, estimate.prompt_tokens) == (1000, 1000, 1_000_000)
    assert estimate.cost_usd == 2.0
    assert extrapolated(chosen, counted, len(taken), {}).cost_usd is None
