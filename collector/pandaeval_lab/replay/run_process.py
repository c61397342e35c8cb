"""The process of an evaluation run: ``python -m pandaeval_lab.replay.run_process``.

Scores stored traces by replay, and sends results to its parent. It may be killed at any time.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Literal, TypeVar

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.runtime.peer import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.judge.call import Caller, JudgeConfig, ModelAnswer, ModelCall
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.runs.engine import RunSetup
from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_collector.runs.settings import evaluator, judge
from pandaeval_collector.runs.spec import Chosen
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.store import Store, StoreAccess, StoreReader
from pandaeval_collector.store.access import FrontWrites
from pandaeval_collector.store.runs import RunBatch, RunResult
from pandaeval_collector.store.verdicts import Verdicts
from pandaeval_lab.replay.counting import CountingCaller, usual_answers
from pandaeval_lab.replay.estimates import (
    DETAILS,
    Counted,
    NewVerdicts,
    by_detail,
    estimate,
    sample_of,
    with_some_wrong,
)
from pandaeval_lab.replay.judge import OwnJudge, ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.stored_traces import StoredTraces

NICE = 10
"""Scoring of past traces can wait, so all other processes go first."""
_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
_NO_ANSWER = "SELECT trace_id, why FROM jobs WHERE state = 'dead' OR why IN ('gone', 'unreadable', 'unfinished')"
File = Callable[[RunBatch], Awaitable[object]]
T = TypeVar("T")


class LiveJudge:
    def __init__(self, parent: Peer) -> None:
        self._parent = parent

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer: ModelAnswer = await self._parent.ask("complete", call)
        return answer

    async def prices(self) -> Mapping[str, Price]:
        prices: Mapping[str, Price] = await self._parent.ask("prices")
        return prices


class PaidCaller:
    """Calls the judge from the scoring thread. Files each cost before the answer is used.

    Create it on the judge's event loop.
    """

    def __init__(self, judge: LiveJudge | OwnJudge, run: int, at_once: int, file: File) -> None:
        self._judge, self._run, self._file = judge, run, file
        self._room, self._loop = asyncio.Semaphore(at_once), asyncio.get_running_loop()

    async def complete(self, call: ModelCall) -> ModelAnswer:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._complete(call), self._loop))

    async def _complete(self, call: ModelCall) -> ModelAnswer:
        async with self._room:
            answer = await self._judge.complete(call)
        await self._file(RunBatch(self._run, [], [], 1, answer.tokens, answer.cost_usd))
        return answer


class BatchScorer:
    """Scores batches of stored traces in order, on a thread without event loop."""

    def __init__(
        self,
        setup: RunSetup,
        scorer: Evaluator,
        live: StoreAccess,
        *,
        judged: JudgeConfig | None = None,
        caller: Caller | None = None,
        verdicts: Verdicts | None = None,
    ) -> None:
        """``live``: the collector's store. ``caller`` and ``verdicts`` replace its judge and known answers."""
        self._setup, self._evaluator, self._live = setup, scorer, live
        self._judged, self._caller, self._verdicts = judged, caller, verdicts or live.verdicts
        self._numbers = itertools.count()
        self._empty = setup.folder / "empty"
        shutil.rmtree(setup.folder, ignore_errors=True)  # the folder of a killed process
        Store(self._empty, durability="off").close()

    def score(self, items: Sequence[Chosen]) -> tuple[RunBatch, list[Result]]:
        """Score whole sessions of traces. Returns members to file, and results."""
        folder = self._setup.folder / f"{next(self._numbers)}"
        shutil.copytree(self._empty, folder)  # in a tenth of the time of creating the tables
        try:
            with closing(Store(folder, durability="off", max_bytes=1 << 40)) as store:
                store.verdicts = self._verdicts
                if (secret := self._live.reads.get(_SECRET)) is not None:
                    store.put(_SECRET, secret).result()
                return self._scored(StoredTraces(store, self._live.reads, items, self._setup.sessions), items)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _scored(self, source: StoredTraces, items: Sequence[Chosen]) -> tuple[RunBatch, list[Result]]:
        results, failed = dict[tuple[str, str], Result](), dict[str, str]()

        def note_failures(decision: Conclusion) -> None:
            failed.update((trace_id.hex(), kind) for trace_id, kind in decision.failed.items())

        where = None if self._setup.sessions else lambda run: run.unit.trace_id in source.about  # others: context
        with self._judge(source.store) as asked:
            for result in replay(source, self._evaluator, asked, where=where, on_decided=note_failures):
                results[result.unit.id, result.key] = result
        for trace_id, why in source.store.reads.connection().execute(_NO_ANSWER):
            failed.setdefault(trace_id.hex(), why or "judge_failed")
        kept = self._kept(source, results, failed)
        whys = {source.about[id_]: why for id_, why in failed.items() if id_ in source.about}
        whys |= dict.fromkeys(source.gone, "gone")
        batch = RunBatch(self._setup.run, [(no, whys.get(no, "")) for no, _ in items], worst_rows(kept))
        return batch, [result for _, _, result in kept]

    def _judge(self, store: Store) -> ReplayJudge | nullcontext[None]:
        if self._judged is None:
            return nullcontext()
        return ReplayJudge(store, self._evaluator, capped(self._judged), caller=self._caller)

    def _kept(
        self, source: StoredTraces, results: Mapping[tuple[str, str], Result], failed: dict[str, str]
    ) -> list[tuple[int, str, Result]]:
        about_session = {name: -group for group, name in source.session_names.items()}
        kept = []
        for (unit, key), result in results.items():
            of_session = result.unit.level == "session"
            no = about_session.get(unit) if of_session else source.about.get(result.unit.trace_id)
            if no is None:
                continue
            result.run_id = self._setup.run_id
            kept.append((no, key, result))
            if result.why in PASSING:
                failed.setdefault(unit if of_session else result.unit.trace_id, str(result.why))
        return kept


def worst_rows(kept: Sequence[tuple[int, str, Result]]) -> list[RunResult]:
    rows: dict[tuple[int, str], RunResult] = {}
    for no, key, result in kept:
        before = rows.get((no, key))
        if before is not None and _rank(result.score) >= _rank(before.score):
            continue
        by = f"{result.evaluator.version} {result.evaluator.model or ''}"
        rows[no, key] = RunResult(
            no, key, result.outcome, result.score, result.success, result.cost_usd, by, result.to_json()
        )
    return [*rows.values()]


def _rank(score: float | None) -> float:
    return 2.0 if score is None else score


class RunProcess:
    """Answers the collector about a run, on an event loop."""

    def __init__(self, setup: RunSetup, parent: Peer) -> None:
        self._setup, self._parent = setup, parent
        self._store = StoreAccess(StoreReader(setup.store), FrontWrites(parent), setup.clock)
        self._evaluator, self._judged = evaluator(setup.config), judge(setup.config)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-run")
        self._scorer: BatchScorer | None = None

    async def score(self, _: object, items: Sequence[Chosen]) -> None:
        """Score traces and write the outcome. Raises ``UserError`` and ``CallFailedError`` without a judge."""
        self._scorer = self._scorer or await self._new_scorer()
        batch, results = await self._threaded(self._scorer.score, items)
        if self._setup.emit and results:
            await self._parent.ask("emitted", pickle.dumps(results), batch)
        else:
            await self._file(batch)

    async def estimate(self, _: object, chosen: Sequence[Chosen]) -> CostEstimate:
        items, usual = sample_of(chosen), usual_answers(self._store.reads)
        prices = await self._judge().prices()
        counted: dict[str, Counted] = {}
        for detail in DETAILS:
            counting, verdicts = CountingCaller(usual), NewVerdicts(self._store.reads)
            scorer = BatchScorer(
                self._setup, self._with(detail), self._store, judged=self._judged, caller=counting, verdicts=verdicts
            )
            if items:
                await self._threaded(scorer.score, items)
            counted[detail] = Counted(counting.models, verdicts.remembered)
        made = {detail: estimate(chosen, each, len(items), prices) for detail, each in with_some_wrong(counted).items()}
        return by_detail(made, self._setup.config.judge.detail)

    def _with(self, detail: Literal["failing", "all", "none"]) -> Evaluator:
        settings = self._evaluator.settings
        assert settings.judge is not None, "these metrics ask a judge"
        asked = replace(settings.judge, detail=detail)
        return Evaluator(self._evaluator.embedder, replace(settings, judge=asked))

    async def _new_scorer(self) -> BatchScorer:
        if self._judged is None:
            return BatchScorer(self._setup, self._evaluator, self._store)
        asked = self._judge()
        await asked.prices()  # raises the reason if the judge does not start
        at_once = max(1, self._setup.config.judge.concurrency // 2)
        caller = PaidCaller(asked, self._setup.run, at_once, self._file)
        return BatchScorer(self._setup, self._evaluator, self._store, judged=self._judged, caller=caller)

    def _judge(self) -> LiveJudge | OwnJudge:
        assert self._judged is not None, "these metrics ask a judge"
        if self._setup.live_models >= set(self._judged.models):
            return LiveJudge(self._parent)
        return OwnJudge(self._store, self._judged, os.environ)

    async def _file(self, batch: RunBatch) -> None:
        await asyncio.wrap_future(self._store.runs.add(batch))

    async def _threaded(self, work: Callable[[Sequence[Chosen]], T], items: Sequence[Chosen]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, items)


async def _open(setup: RunSetup, parent: Peer) -> Handlers:
    process = RunProcess(setup, parent)
    LIMIT.listen()
    return {"score": process.score, "estimate": process.estimate}


if __name__ == "__main__":
    serve_together(_open, nice=NICE)
