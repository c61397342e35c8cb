"""Several votes on one question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.jobs.anew import Votes
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, Question
from support.asked import Memory, ScriptedCaller
from support.embedder import WordEmbedder
from support.judged import call, trace

MODEL = "openai/small"
RUN = trace(calls=[call(1)])
PACK = pack(RUN, b"s" * 32)
BAD: dict[str, Any] = {"reason": "So.", "confidence": "high"}
SUSPECTED: dict[str, Any] = {"instructed": True, "reason": "It orders.", "confidence": 1.0}


def _says(value: float) -> dict[str, Any]:
    return {"reason": f"It is {value}.", "confidence": value}


def _question(votes: int = 3) -> Question:
    settings = EvaluatorSettings(judge=JudgeSettings(MODEL, votes=votes))
    _, questions = Evaluator(WordEmbedder(), settings).judged(RUN)
    return next(each for each in questions if each.metric.name == "confidence")


class _Breaking(ScriptedCaller):
    """Its provider is away for some of the calls, by number."""

    def __init__(self, said: Sequence[dict[str, Any]], away: set[int]) -> None:
        super().__init__({"confidence": list(said)})
        self.away, self.calls = away, 0

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.calls += 1
        if self.calls in self.away:
            raise CallFailedError(CallFailure.UNAVAILABLE, "away")
        return await super().complete(call)


async def _vote(caller: ScriptedCaller, number: int = 3, memory: Memory | None = None) -> tuple[Finding | None, Judge]:
    memory = memory or Memory()
    desk = Desk(caller, memory)
    judge = Judge(desk, PACK, MODEL)
    return await Votes(desk, number).verdict(_question(number), RUN, judge), judge


class TestVotes:
    async def test_the_median_counts_with_the_reason_of_the_vote_that_gave_it(self) -> None:
        caller = ScriptedCaller({"confidence": [_says(0.9), _says(0.1), _says(0.7)]})
        found, judge = await _vote(caller)
        assert isinstance(found, Score)
        assert (found.value, found.reason) == (0.7, "It is 0.7.")
        assert found.metadata["votes"] == {"scores": [0.9, 0.1, 0.7], "of": 3, "spread": 0.8, "passed": 2}
        assert judge.spent.calls == 3, "all votes are paid for by the result"
        assert len({messages[1]["content"] for messages in caller.messages}) == 3, "each behind fences of its own"

    async def test_one_vote_is_a_verdict_as_ever(self) -> None:
        caller = ScriptedCaller({"confidence": [_says(0.9), _says(0.1)]})
        found, _ = await _vote(caller, 1)
        assert found == Score(0.9, "It is 0.9.")
        assert caller.asked == ["confidence"]

    async def test_of_an_even_number_it_is_the_mean_of_the_middle(self) -> None:
        found, _ = await _vote(ScriptedCaller({"confidence": [_says(0.2), _says(0.4), _says(0.6), _says(1.0)]}), 4)
        assert isinstance(found, Score)
        assert found.value == 0.5

    async def test_a_majority_that_holds_suffices(self) -> None:
        found, _ = await _vote(ScriptedCaller({"confidence": [_says(0.9), BAD, _says(0.7), BAD]}))
        assert isinstance(found, Score)
        assert math.isclose(found.value, 0.8)
        assert found.metadata["votes"]["of"] == 3

    async def test_fewer_are_no_verdict(self) -> None:
        with pytest.raises(NoVerdictError, match="1 of 3 votes are verdicts") as raised:
            await _vote(ScriptedCaller({"confidence": [_says(0.9), BAD]}))
        assert raised.value.why is Why.INVALID_VERDICT

    async def test_one_vote_that_suspects_the_run_is_enough(self) -> None:
        with pytest.raises(NoVerdictError) as raised:
            await _vote(ScriptedCaller({"confidence": [_says(0.9), _says(0.9), SUSPECTED]}))
        assert raised.value.why is Why.INJECTION_SUSPECTED

    async def test_a_try_after_failed_calls_pays_for_what_is_missing_only(self) -> None:
        memory, caller = Memory(), _Breaking([_says(0.9), _says(0.7), _says(0.8)], away={2, 3})
        with pytest.raises(CallFailedError):
            await _vote(caller, memory=memory)
        found, judge = await _vote(caller, memory=memory)
        assert isinstance(found, Score)
        assert found.value == 0.8
        assert judge.spent.calls == 2

    async def test_a_provider_that_is_away_is_asked_once_not_three_times(self) -> None:
        caller = _Breaking([], away={1, 2, 3})
        with pytest.raises(CallFailedError):
            await _vote(caller)
        assert caller.calls == 1

    def test_the_number_is_part_of_a_results_id_unless_it_is_one(self) -> None:
        assert _question(1).id == _question(1).id != _question(3).id
