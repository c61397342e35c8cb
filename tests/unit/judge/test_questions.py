"""Questions: truncated answers, repairs, long records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from support.judged import call, trace
from support.scripted_judge import GOOD, Memory, scripted_reply

RUBRIC = CONFIDENCE.rubrics[-1]

Say = Callable[[int, ModelCall], ModelAnswer]


class Scripted:
    """Implements ``Caller``. ``calls`` holds the calls in order."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.calls: list[ModelCall] = []

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.calls.append(call)
        return self._say(len(self.calls) - 1, call)


def _good(call: ModelCall) -> ModelAnswer:
    return ModelAnswer(scripted_reply(call.messages, "confidence", GOOD), 100, 20, 0.001, model="m")


def _pack(budget: int = 12_000, **fields: object) -> Pack:
    return pack(
        trace(calls=[call(number, result="There it is. " * 20) for number in range(40)], **fields), b"s" * 32, budget
    )


async def test_a_truncated_reply_is_retried_once_with_more_room() -> None:
    caller = Scripted(lambda number, call: replace(_good(call), cut=number == 0))
    judge = Judge(JudgeClient(caller, Memory()), _pack(), "m")
    assert (await judge.ask(RUBRIC)).confidence == 0.4
    assert [each.more for each in caller.calls] == [False, True]
    assert judge.spent.calls == 2


async def test_a_reply_truncated_twice_is_no_verdict() -> None:
    caller = Scripted(lambda number, call: replace(_good(call), cut=True, max_tokens=900))
    with pytest.raises(NoVerdictError, match=r"cut at 900 tokens.*judge\.parameters") as error:
        await Judge(JudgeClient(caller, Memory()), _pack(), "m").ask(RUBRIC)
    assert error.value.why.value == "invalid_verdict"
    assert len(caller.calls) == 2


async def test_a_repair_call_enforces_the_schema_of_its_question() -> None:
    caller = Scripted(lambda number, call: _good(call) if number else ModelAnswer("0.9", model="m"))
    await Judge(JudgeClient(caller, Memory()), _pack(), "m").ask(RUBRIC)
    assert [each.held for each in caller.calls] == [False, True]
    assert caller.calls[1].messages[:4] == caller.calls[0].messages


async def test_a_record_that_is_too_long_is_shortened_once() -> None:
    def narrow(number: int, call: ModelCall) -> ModelAnswer:
        if len(call.messages[2]["content"]) > 4 * 1000:
            raise CallFailedError(CallFailure.TOO_LONG, "maximum context length is 2048 tokens")
        return _good(call)

    async def shorter() -> Pack:
        return _pack(900)

    caller = Scripted(narrow)
    judge = Judge(JudgeClient(caller, Memory()), _pack(), "m", shorter=shorter)
    assert (await judge.ask(RUBRIC)).confidence == 0.4
    assert len(caller.calls) == 2
    assert judge.spent.truncated == judge.pack.truncated == ("what happened",)
    stubborn = Judge(JudgeClient(caller, Memory()), _pack(digest="d2"), "m")
    with pytest.raises(CallFailedError):
        await stubborn.ask(RUBRIC)


async def test_cached_verdicts_depend_on_the_model_parameters() -> None:
    caller, memory, how = Scripted(lambda number, call: _good(call)), Memory(), ["", "", "low"]
    for each in how:
        await Judge(JudgeClient(caller, memory, parameters=each), _pack(), "m").ask(RUBRIC)
    assert len(caller.calls) == 2
