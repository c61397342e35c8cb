"""The surroundings of a stepped collector: senders, sink, owner and judge.

Each call waits until the test answers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.exporters import RetryLaterError, Row, Sent
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from support.scripted_judge import GOOD, scripted_reply
from support.stepped.loop import LIFE

Answer = Literal["taken", "taken, answer lost", "not taken"]
ANSWERS: tuple[Answer, ...] = ("taken", "taken, answer lost", "not taken")
Verdict = Literal["good", "rate_limit", "timeout"]
VERDICTS: tuple[Verdict, ...] = ("good", "rate_limit", "timeout")


@dataclass(slots=True)
class Waiting:
    """An unanswered call of a ``life``; ``take`` performs it."""

    life: Any
    answered: asyncio.Future[None]
    take: Callable[[], Any]

    @property
    def is_open(self) -> bool:
        return not self.life.is_dead and not self.answered.done()


@dataclass(slots=True)
class Sink:
    """Records accepted items. ``changed``: repeats with other content."""

    bodies: dict[tuple[str, int], bytes] = field(default_factory=dict)
    changed: set[tuple[str, int]] = field(default_factory=set)
    repeated: int = 0

    def take(self, rows: Sequence[Row]) -> None:
        for row in rows:
            key = _name(row.body)
            self.repeated += key in self.bodies
            if self.bodies.setdefault(key, row.body) != row.body:
                self.changed.add(key)


def _name(body: bytes) -> tuple[str, int]:
    values = {each.key: each.value for each in LogRecord.FromString(body).attributes}
    return values["pandaeval.result.id"].string_value, values["pandaeval.revision"].int_value


class Calls:
    """An exporter that waits for the test. ``take`` receives the rows."""

    off = False

    def __init__(self, name: str, source: str, calls: list[Waiting], take: Callable[[Sequence[Row]], Any]) -> None:
        self.name, self.source = name, source
        self._calls, self._take = calls, take

    async def open(self, position: str) -> str:
        return position

    async def export(self, rows: Sequence[Row]) -> Sent:
        call = Waiting(LIFE.get(), asyncio.get_running_loop().create_future(), lambda: self._take(rows))
        if not call.life.is_dead:  # a dead collector sends nothing
            self._calls.append(call)
        await call.answered
        return Sent(len(rows))

    async def close(self) -> None:
        pass


class JudgeByHand:
    """Implements ``Caller``; the test answers each call."""

    def __init__(self, calls: list[tuple[Waiting, list[Verdict]]]) -> None:
        self._calls = calls

    async def complete(self, call: ModelCall) -> ModelAnswer:
        verdict: list[Verdict] = []
        waiting = Waiting(LIFE.get(), asyncio.get_running_loop().create_future(), lambda: None)
        self._calls.append((waiting, verdict))
        await waiting.answered
        if verdict[0] != "good":
            raise CallFailedError(CallFailure(verdict[0]), f"the judge's answer was {verdict[0]}")
        return verdict_of(call)


class JudgeAtOnce:
    """The same judge with immediate answers, for a file run."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        return verdict_of(call)


def verdict_of(call: ModelCall) -> ModelAnswer:
    assert call.response_format is not None
    about = call.response_format["json_schema"]["name"]
    return ModelAnswer(scripted_reply(call.messages, about, GOOD), 100, 20, 0.001, model=call.model)


def answer(call: Waiting, how: Answer) -> None:
    if how != "not taken":
        call.take()
    if how == "taken":
        call.answered.set_result(None)
    else:
        call.answered.set_exception(RetryLaterError(how))
