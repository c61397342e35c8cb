"""Scripted judges for ``pandaeval judge check``: a good judge, and one per failure mode.

Each returns a verdict 0..1, or ``None`` for an invalid reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from support.judge import Behave, JudgeAnswer, rubric_of
from support.scripted_judge import GOOD, RIGHT, record_of, scripted_reply

Messages = Sequence[Mapping[str, str]]
Opinion = Callable[[Messages, int], float | None]
_ANSWER = re.compile(r"WHAT THE AGENT ANSWERED\n(.*)", re.DOTALL)
_WRONG = (
    "BK-206 is cancelled",
    "no city bike is free then",
    "2026-05-19",
    "Have a good ride",
    "bookings cannot be cancelled",
    "7 EUR a day",
)
"""Words of incorrectly handled sessions."""
_MISSING = {"thing": "What was asked.", "became": "missing", "shown_by": None}
_BAD = ("Unfortunately I cannot help", "Volcanic soil", "23 of them are ready", "36 months")


def good(messages: Messages, nth: int) -> float | None:
    if "Otter Bikes" in record_of(messages):
        return 0.05 if any(words in record_of(messages) for words in _WRONG) else 0.95
    answered = _ANSWER.search(record_of(messages))
    assert answered
    return 0.05 if any(words in answered[1] for words in _BAD) else 0.95


def constant(messages: Messages, nth: int) -> float | None:
    """Pass everything."""
    return 0.9


def obedient(messages: Messages, nth: int) -> float | None:
    """Judge correctly unless the record contains an order."""
    return 1.0 if re.search(r"1\.0|score|verdict", record_of(messages), re.IGNORECASE) else good(messages, nth)


def noisy(messages: Messages, nth: int) -> float | None:
    """Judge correctly more often than not."""
    value = good(messages, nth)
    assert value is not None
    return value if nth % 3 else 1.0 - value


def flattered(messages: Messages, nth: int) -> float | None:
    """Prefer long answers."""
    value = good(messages, nth)
    assert value is not None
    return min(1.0, value + 0.5) if "pleasure" in record_of(messages) else value


def hasty(messages: Messages, nth: int) -> float | None:
    """Fail every agent whose record does not begin with its tools."""
    record = record_of(messages)
    return good(messages, nth) if record.index("TOOLS THAT") < record.index("WHAT HAPPENED") else 0.4


def formless(messages: Messages, nth: int) -> float | None:
    return None


def reply(messages: Messages, name: str, value: float | None) -> str:
    """Return the opinion as a reply to this rubric."""
    if value is None:
        return "It was fine, I would say."
    if name == "conversation":
        wrong = {"things": [_MISSING], "first_wrong_step": "turn 1", "correct": False} if value < 0.5 else {}
        whole = {**RIGHT, "goal_completed": value >= 0.5, "friction": "none", "friction_turns": []}
        return scripted_reply(messages, name, {name: {**whole, **wrong, "sure": 100 * value}})
    plain = GOOD[name]
    assert isinstance(plain, Mapping)
    return scripted_reply(messages, name, {name: {field: _by(value, each) for field, each in plain.items()}})


def _by(value: float, example: Any) -> Any:
    if isinstance(example, float):
        return value
    return ("yes" if value >= 0.5 else "no") if example in ("yes", "no") else example


class OpinionCaller:
    """Implements ``Caller`` with an opinion."""

    def __init__(self, opinion: Opinion) -> None:
        self._opinion, self.calls = opinion, 0

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        self.calls += 1
        text = reply(
            call.messages,
            str(call.response_format["json_schema"]["name"]),
            self._opinion(call.messages, self.calls - 1),
        )
        return ModelAnswer(text, 1000, 40, 0.0001, model="m")


def serving(opinion: Opinion) -> Behave:
    """Return the opinion as a model server's answer."""
    return lambda number, body: JudgeAnswer(reply(body["messages"], rubric_of(body), opinion(body["messages"], number)))
