"""Judge jobs: abandoned, postponed, retried."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.outcome import Patience
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory, client_of
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.pipeline.line.decision import Conclusion, Judgement
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_collector.store.clock import StoreClock
from support.database import open_database
from support.embedder import WordEmbedder
from support.judged import filed_here, stored
from support.made_traces import Composer
from support.receivers import until
from support.scripted_judge import GOOD, scripted_reply

CONFIDENCE = "trace.confidence"
Say = Callable[[ModelCall], Awaitable[ModelAnswer]]


async def good(call: ModelCall) -> ModelAnswer:
    return ModelAnswer(scripted_reply(call.messages, "confidence", GOOD), 100, 20, 0.001, model=call.model)


class Scripted:
    """Implements ``Caller``. ``asked`` counts the calls per trace."""

    def __init__(self, say: Say = good) -> None:
        self.say = say
        self.asked: Counter[str] = Counter()

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.asked[call.messages[2]["content"]] += 1
        return await self.say(call)


class Jobs:
    """A store with decided traces and a runner."""

    def __init__(self, folder: Path, caller: Scripted, model: str = "m", **runner: Any) -> None:
        self.caller = caller
        self.later = 0.0
        self.store = Store(folder, "off", clock=StoreClock(lambda: time.time() + self.later, self._monotonic))
        judge = JudgeSettings(model, delay=0.0)
        self.evaluator = Evaluator(
            WordEmbedder(), EvaluatorSettings({CONFIDENCE, "session.agent_consistency"}, judge=judge)
        )
        self.line = Line(self.store.reads, self.evaluator)
        self.telemetry = Telemetry()
        self._lock = asyncio.Lock()
        patience = runner.pop("patience", Patience(first=0.001, longest=0.002))
        slots, longest_wait = runner.pop("slots", 16), runner.pop("longest_wait", lambda: math.inf)
        attempts = Attempts(
            self.store,
            self.line.scores,
            self.evaluator,
            client_of(caller, judge, StoredMemory(self.store, self.telemetry)),
            filed_here(self.line, self._settle),
            self.telemetry,
            patience,
            **runner,
        )
        self.runner = Runner(self.store, attempts, slots, longest_wait)

    def _monotonic(self) -> float:
        return time.monotonic() + self.later

    async def _settle(self, decide: Callable[[], Conclusion]) -> None:
        async with self._lock:
            await asyncio.wrap_future(self.store.commit(decide().changes))

    def decide(self, count: int, seed: int = 4) -> int:
        """Decide ``count`` traces; return the number of waiting jobs."""
        composer = Composer(seed)
        for _ in range(count):
            self.store.commit(self.line.decide([stored(self.store, composer.trace())]).changes).result()
        return self.store.jobs.waiting()

    def results(self) -> list[dict[str, Any]]:
        """Return all judged results with a job."""
        bodies = [json.loads(row.body) for row in self.store.reads.results_after(0, 10_000)]
        return [body for body in bodies if body["metric"] == "confidence" and body["why"] != "no_content"]


@contextlib.asynccontextmanager
async def _jobs(folder: Path, say: Say = good, **runner: Any) -> AsyncIterator[Jobs]:
    jobs = Jobs(folder, Scripted(say), **runner)
    try:
        yield jobs
    finally:
        jobs.store.close()


async def test_every_job_gives_one_result(tmp_path: Path) -> None:
    async with _jobs(tmp_path) as jobs:
        count = jobs.decide(12)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"done": count}
        assert len(jobs.results()) == count
        assert {each["score"] for each in jobs.results()} == {0.4}


async def test_jobs_that_wait_too_long_end_and_release_their_spans(tmp_path: Path) -> None:
    waits = [math.inf]

    async def never(call: ModelCall) -> ModelAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    def compressed() -> int:
        return jobs.store.kept.keep(0.0, jobs.store.clock.calendar() + 1.0)

    async with _jobs(tmp_path, never, slots=2, longest_wait=lambda: waits[0]) as jobs:
        count = jobs.decide(8)
        compressed()  # traces without a judge job
        await jobs.runner.start()
        await until(lambda: len(jobs.caller.asked) == 2)
        assert not jobs.results()
        assert not compressed()
        waits[0] = 0.0
        await until(lambda: jobs.store.jobs.counts() == {"leased": 2, "done": count - 2})
        assert len(jobs.caller.asked) == 2
        assert {(each["outcome"], each["why"]) for each in jobs.results()} == {("unscored", "over_budget")}
        assert compressed() == count - 2
        await jobs.runner.stop()


async def test_only_jobs_that_waited_too_long_are_ended(tmp_path: Path) -> None:
    async with _jobs(tmp_path, longest_wait=lambda: 100.0) as jobs:
        old = jobs.decide(4)
        jobs.later = 101.0
        new = jobs.decide(5, seed=5) - old
        await jobs.runner.drain()
        assert Counter(each["why"] for each in jobs.results()) == {"over_budget": old, None: new}


async def test_a_job_that_crashes_twice_is_dead_and_other_jobs_finish(tmp_path: Path) -> None:
    poison: list[str] = []

    async def crash(call: ModelCall) -> ModelAnswer:
        poison[:] = poison or [call.messages[2]["content"]]
        await asyncio.sleep(0.01)  # other calls are running when the process dies
        if call.messages[2]["content"] == poison[0]:
            raise CallFailedError(CallFailure.CRASHED, "the judge's process died")
        return await good(call)

    async with _jobs(tmp_path, crash) as jobs:
        count = jobs.decide(10)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"dead": 1, "done": count - 1}
        assert jobs.caller.asked[poison[0]] == 2
        assert Counter(each["why"] for each in jobs.results()) == {None: count - 1, "judge_failed": 1}


async def test_crashes_shared_by_all_jobs_kill_no_job(tmp_path: Path) -> None:
    crashes = iter([True] * 4)

    async def crash(call: ModelCall) -> ModelAnswer:
        await asyncio.sleep(0.01)
        if next(crashes, False):
            raise CallFailedError(CallFailure.CRASHED, "the judge's process died")
        return await good(call)

    async with _jobs(tmp_path, crash, slots=4) as jobs:
        count = jobs.decide(10)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"done": count}
        assert max(jobs.caller.asked.values()) == 2


async def test_jobs_beyond_the_daily_budget_are_unscored(tmp_path: Path) -> None:
    async def broke(call: ModelCall) -> ModelAnswer:
        raise OverBudgetError

    async with _jobs(tmp_path, broke) as jobs:
        count = jobs.decide(4)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"done": count}
        assert {each["why"] for each in jobs.results()} == {"over_budget"}


async def test_failed_jobs_are_retried_until_their_attempts_are_used_up(tmp_path: Path) -> None:
    async def fails(call: ModelCall) -> ModelAnswer:
        raise CallFailedError(CallFailure.UNAVAILABLE, "503")

    async with _jobs(tmp_path, fails, patience=Patience(attempts=3, first=0.001, longest=0.002)) as jobs:
        count = jobs.decide(3)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"dead": count}
        assert set(jobs.caller.asked.values()) == {3}
        assert {each["why"] for each in jobs.results()} == {"judge_failed"}


async def test_a_fallback_result_has_its_own_model_and_the_id_of_the_question(tmp_path: Path) -> None:
    async def fallback(call: ModelCall) -> ModelAnswer:
        answer = await good(call)
        return ModelAnswer(answer.text, 100, 20, 0.002, model="anthropic/claude")

    async with _jobs(tmp_path / "one") as jobs:
        jobs.decide(3)
        await jobs.runner.drain()
        ids = [each["id"] for each in jobs.results()]
    async with _jobs(tmp_path / "two", fallback) as jobs:
        jobs.decide(3)
        await jobs.runner.drain()
        assert sorted(each["id"] for each in jobs.results()) == sorted(ids)
        assert {each["evaluator"]["model"] for each in jobs.results()} == {"anthropic/claude"}


async def test_a_result_holds_its_model_pack_tokens_and_cost(tmp_path: Path) -> None:
    async def cached(call: ModelCall) -> ModelAnswer:
        return ModelAnswer((await good(call)).text, 100, 20, 0.002, model="anthropic/claude", cached_tokens=64)

    async with _jobs(tmp_path, cached) as jobs:
        count = jobs.decide(3)
        await jobs.runner.drain()
        told = [each["metadata"]["judge"] for each in jobs.results()]
        assert "truncated" not in jobs.results()[0]["metadata"]
    assert len(told) == count
    assert len({each.pop("pack") for each in told}) == count
    assert told[0] == {
        "model": "anthropic/claude",
        "prompt_version": PROMPT_VERSION,
        "calls": 1,
        "tokens": {"input": 100, "output": 20, "cached": 64},
        "cost_usd": 0.002,
    }


async def test_after_a_rest_one_job_tests_the_judge_before_other_jobs(tmp_path: Path) -> None:
    """The first answer precedes other calls."""
    waiting, inside, entered = 12, 0, list[int]()

    async def back_later(call: ModelCall) -> ModelAnswer:
        nonlocal inside, waiting
        if waiting:
            waiting -= 1
            raise CallFailedError(CallFailure.COOLDOWN, "it failed too often just now", 1.1)
        inside += 1
        entered.append(inside)
        await asyncio.sleep(0.3 if len(entered) == 1 else 0.02)
        inside -= 1
        return await good(call)

    async with _jobs(tmp_path, back_later) as jobs:
        waiting = count = jobs.decide(12)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"done": count}
        assert entered[:2] == [1, 1]
        assert max(entered) > 1


async def test_an_interactive_run_gives_up_on_a_dead_judge(tmp_path: Path) -> None:
    """Two tries with a pause."""
    tried = 0

    async def dead(call: ModelCall) -> ModelAnswer:
        nonlocal tried
        tried += 1
        if tried in (1, 3):
            raise CallFailedError(CallFailure.UNAVAILABLE, "Connection error.")
        raise CallFailedError(CallFailure.COOLDOWN, "it failed too often just now", 1.1)

    patience = Patience(attempts=1, first=0.001, longest=0.002, interactive=True)
    async with _jobs(tmp_path, dead, patience=patience, slots=1) as jobs:
        count = jobs.decide(12)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"dead": count}
        assert count > tried == 4
        assert all("Connection error." in each["reason"] for each in jobs.results())


async def test_a_paid_verdict_is_reused_without_another_call(tmp_path: Path) -> None:
    async def fallback(call: ModelCall) -> ModelAnswer:
        return ModelAnswer((await good(call)).text, 100, 20, 0.002, model="anthropic/claude")

    async with _jobs(tmp_path, fallback) as jobs:
        jobs.decide(3)
        await jobs.runner.drain()
        judged = jobs.results()
    with open_database(tmp_path / "pandaeval.db") as database:
        database.execute("UPDATE jobs SET state = 'leased', ended_at = NULL WHERE state = 'done'")
        database.execute("DELETE FROM results WHERE metric = ?", (CONFIDENCE,))
    async with _jobs(tmp_path) as jobs:
        await jobs.runner.drain()
        assert not jobs.caller.asked
        again = jobs.results()
        assert sorted(each["id"] for each in again) == sorted(each["id"] for each in judged)
        assert {(each["evaluator"]["model"], each["cost_usd"]) for each in again} == {("anthropic/claude", 0.0)}


@pytest.mark.parametrize(("fails", "counts"), [(1, {"done": 1}), (8, {"dead": 1})])
async def test_a_job_whose_result_cannot_be_filed_is_retried_a_limited_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int, counts: dict[str, int]
) -> None:
    async with _jobs(tmp_path) as jobs:
        assert jobs.decide(1) == 1
        judged, tried = jobs.line.judged, Counter[str]()

        def cannot(judgements: Sequence[Judgement]) -> Conclusion:
            tried["filed"] += 1
            if tried["filed"] <= fails:
                raise ZeroDivisionError("nobody thought of this")
            return judged(judgements)

        monkeypatch.setattr(jobs.line, "judged", cannot)
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == counts
        assert tried["filed"] == fails + 1
        assert len(jobs.results()) == counts.get("done", 0)
        assert jobs.caller.asked.total() == 1, "its verdict is cached"
        ended = {outcome: jobs.telemetry.total("pandaeval.jobs", outcome) for outcome in ("done", "dead", "put_back")}
        assert ended == {"done": 0, "dead": 0, **counts, "put_back": min(fails, 7)}


async def test_a_stopped_runner_leaves_its_jobs_to_the_next_start(tmp_path: Path) -> None:
    async def hang(call: ModelCall) -> ModelAnswer:
        await asyncio.sleep(3600)
        raise AssertionError

    async with _jobs(tmp_path, hang) as jobs:
        count = jobs.decide(5)
        await jobs.runner.start()
        await until(lambda: bool(jobs.caller.asked))
        await jobs.runner.stop()
        assert jobs.store.jobs.waiting() == count
    async with _jobs(tmp_path) as jobs:
        await jobs.runner.drain()
        assert jobs.store.jobs.counts() == {"done": count}
