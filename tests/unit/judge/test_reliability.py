"""How far a judge can be trusted: questions put twice, and runs whose verdicts are known."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.checks import Agreement, AskedAgain
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, Question
from pandaeval_collector.store import Store
from pandaeval_lab.cli._summary import AskedTwice, Summary
from support.asked import Memory, ScriptedCaller
from support.embedder import WordEmbedder
from support.judged import call, trace

MODEL = "openai/small"
RUN = trace(calls=[call(1)], reasoning=("First I search, then I tell.",))
GOLDEN = Path(__file__).parents[2] / "golden" / "captures" / "pydantic_ai"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, durability="off", max_bytes=1 << 30)
    yield opened
    opened.close()


def _evaluator() -> Evaluator:
    return Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings(MODEL)))


def _question(name: str) -> Question:
    _, questions = _evaluator().judged(RUN)
    return next(each for each in questions if each.metric.name == name)


def _gauge(telemetry: Telemetry, name: str, **about: str) -> list[float]:
    wanted = {f"pandaeval.{key}": value for key, value in about.items()}
    measures = [each for each in telemetry.measures() if each.instrument.name == name]
    return [each.value for each in measures if wanted.items() <= dict(each.attributes).items()]


class _Failing(ScriptedCaller):
    """Answers ``good`` calls, then raises."""

    def __init__(self, good: int, error: Exception) -> None:
        super().__init__({})
        self._good, self._error = good, error

    async def complete(self, call: ModelCall) -> ModelAnswer:
        if len(self.asked) >= self._good:
            raise self._error
        return await super().complete(call)


class TestRetest:
    async def _beside(
        self, store: Store, caller: ScriptedCaller, name: str, share: float = 1.0, telemetry: Telemetry | None = None
    ) -> tuple[Any, Judge]:
        telemetry = telemetry or Telemetry()
        question, packed = _question(name), pack(RUN, b"s" * 32)
        first = Judge(Desk(caller, Memory()), packed, MODEL)
        assert question.metric.ask is not None
        finding = await question.metric.ask(RUN, first)
        assert finding is not None
        retest = AskedAgain(Desk(caller, Memory()), Agreement(store, telemetry), telemetry, share)
        return await retest.beside(question, RUN, packed, first, finding), first

    async def test_the_question_is_put_once_more_behind_other_fences_and_the_first_verdict_stands(
        self, store: Store
    ) -> None:
        said = [
            {"answered": "yes", "taken": "yes", "reason": "Good.", "verdict": 0.9},
            {"answered": "no", "taken": "yes", "reason": "Less so.", "verdict": 0.7},
        ]
        caller, telemetry = ScriptedCaller({"task_completion": said}), Telemetry()
        found, first = await self._beside(store, caller, "task_completion", telemetry=telemetry)
        assert found.value == 0.9
        assert found.metadata["retest"]["score"] == 0.7
        assert math.isclose(found.metadata["retest"]["difference"], 0.2)
        assert found.metadata["judge_agreement"]["n"] == 1
        assert caller.asked == ["task_completion", "task_completion"]
        assert first.spent.calls == 2, "and the second call is paid for by the result"
        assert caller.questions[0] != caller.questions[1]
        about = {"check": "retest", "metric": "trace.task_completion", "model": MODEL}
        [shown] = _gauge(telemetry, "pandaeval.judge.agreement", **about)
        assert math.isclose(shown, 0.8)

    async def test_without_a_share_nothing_is_asked_twice(self, store: Store) -> None:
        caller = ScriptedCaller({})
        found, _ = await self._beside(store, caller, "confidence", share=0.0)
        assert caller.asked == ["confidence"]
        assert not found.metadata

    @pytest.mark.parametrize(
        "error", [CallFailedError(CallFailure.TIMEOUT, "late"), OverBudgetError()], ids=["timeout", "budget"]
    )
    async def test_that_the_provider_is_away_says_nothing_about_the_judge(self, store: Store, error: Exception) -> None:
        telemetry = Telemetry()
        found, _ = await self._beside(store, _Failing(1, error), "confidence", telemetry=telemetry)
        assert isinstance(found, Score)
        assert "retest" not in found.metadata
        assert telemetry.total("pandaeval.judge.retests", "not_asked") == 1
        assert not _gauge(telemetry, "pandaeval.judge.agreement")

    async def test_agreement_outlives_a_restart(self, store: Store) -> None:
        await Agreement(store, Telemetry()).add("retest", "trace.confidence", MODEL, (0.8, 0.4), 0.5)
        telemetry = Telemetry()
        again = Agreement(store, telemetry)
        await again.add("retest", "trace.confidence", MODEL, (0.1, 0.1), 0.5)
        shown = again.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert (shown.agreement, shown.flips, shown.n) == (0.8, 1, 2)
        assert _gauge(telemetry, "pandaeval.judge.agreement") == [0.8]
        assert _gauge(telemetry, "pandaeval.judge.flips") == [0.5]

    async def test_a_judge_that_says_the_same_of_all_is_named(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        telemetry = Telemetry()
        agreement = Agreement(store, telemetry)
        with caplog.at_level(logging.WARNING):
            for _ in range(25):
                await agreement.add("retest", "trace.confidence", MODEL, (0.9, 0.9), 0.5)
        shown = agreement.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert (shown.agreement, shown.to_dict()["label"]) == (1.0, "does not discriminate")
        assert _gauge(telemetry, "pandaeval.judge.discrimination") == [0.0]
        assert _gauge(telemetry, "pandaeval.judge.spread", of="runs") == [0.0]
        assert not _gauge(telemetry, "pandaeval.judge.kappa"), "where chance explains everything there is no kappa"
        assert len(caplog.records) == 1
        assert "does not discriminate by trace.confidence" in caplog.text

    async def test_a_judge_that_tells_runs_apart_is_not(self, store: Store) -> None:
        agreement = Agreement(store, Telemetry())
        for number in range(25):
            value = number % 5 / 4
            await agreement.add("retest", "trace.confidence", MODEL, (value, abs(value - 0.05)), 0.5)
        shown = agreement.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert not shown.alike
        assert shown.discrimination > 0.9


def test_agreement_is_shown_beside_the_scores() -> None:
    summary = Summary()
    result: dict[str, Any] = {
        "level": "trace",
        "metric": "confidence",
        "outcome": "scored",
        "why": None,
        "score": 0.9,
        "reason": "",
        "trace_id": "t",
        "session_id": None,
        "agent": "a",
        "success": True,
        "label": "pass",
    }
    for difference in (0.0, 0.2):
        summary.add(
            {
                **result,
                "metadata": {
                    "retest": {"score": 0.9 - difference, "difference": difference, "flipped": difference > 0}
                },
            }
        )
    summary.add({**result, "metadata": {}})
    assert summary.agreement() == {"trace.confidence": AskedTwice(0.9, 1, 2, False)}
    alike = {"value": 1.0, "n": 20, "label": "does not discriminate"}
    summary.add({**result, "metadata": {"judge_agreement": alike}})
    assert summary.agreement()["trace.confidence"].alike
