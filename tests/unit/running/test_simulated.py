"""The simulated user: input, end and invalid replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_lab.cases.model import Scenario
from pandaeval_lab.running.simulated import SimulatedUser, Simulator, invented, prompt

SCENARIO = Scenario(
    goal="Get the money for order A-17 back", profile="Curt", knowledge=("paid by card 4411",), max_turns=4
)


class _Model:
    """Answers or raises by script."""

    def __init__(self, *answers: str | Exception) -> None:
        self.calls: list[ModelCall] = []
        self._answers = list(answers)

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.calls.append(call)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelAnswer(answer, 10, 5, 0.25)


def said(message: str = "", state: str = "going_on") -> str:
    return json.dumps({"reason": "so", "state": state, "message": message})


def _played(model: _Model, answers: Sequence[str], scenario: Scenario = SCENARIO) -> tuple[list[str], SimulatedUser]:
    """Return the user's messages, and the user."""
    user = SimulatedUser(Simulator(model, "openai/m", "openai/m, temperature 0.7, seed 0"), scenario, 1)

    async def play() -> list[str]:
        messages, left = [], [None, *answers]
        while left and (message := await user.next(left.pop(0))) is not None:
            messages.append(message)
        return messages

    return asyncio.run(play()), user


def test_the_simulated_user_sees_the_conversation_with_swapped_roles() -> None:
    model = _Model(said("Money back, order A-17"), said("By card"), said("", "goal_met"))
    messages, user = _played(model, ["How did you pay?", "It is on its way."])
    assert messages == ["Money back, order A-17", "By card"]
    assert [(each["role"], each["content"]) for each in model.calls[2].messages[2:]] == [
        ("assistant", "Money back, order A-17"),
        ("user", "How did you pay?"),
        ("assistant", "By card"),
        ("user", "It is on its way."),
    ]
    assert not user.spoilt
    assert user.marks["pandaeval.simulator.ended"] == "goal_met"
    assert user.marks["pandaeval.simulated"] is True
    assert user.marks["pandaeval.goal"] == SCENARIO.goal
    assert user.marks["pandaeval.simulator"] == "openai/m, temperature 0.7, seed 0, prompt 2"


def test_the_prompt_contains_the_whole_scenario() -> None:
    text = prompt(SCENARIO, 3)
    assert all(each in text for each in (SCENARIO.goal, "Curt", "- paid by card 4411", "conversation 3"))
    assert "Nothing else." in prompt(Scenario(goal="x"), 1)


def test_a_given_first_message_needs_no_model_call() -> None:
    model = _Model(said("", "given_up"))
    messages, user = _played(model, ["No."], SCENARIO.model_copy(update={"first_message": "Order 99"}))
    assert messages == ["Order 99"]
    assert user.marks["pandaeval.simulator.ended"] == "given_up"


def test_the_conversation_ends_at_the_turn_limit() -> None:
    model = _Model(*(said(f"still {each}") for each in "abcd"))
    messages, user = _played(model, [str(each) for each in range(9)])
    assert len(messages) == 4
    assert (user.spoilt, user.marks["pandaeval.simulator.ended"]) == ("", "turn_limit")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (("no json", "no json"), "the reply is no such object"),
        ((said("order B-18"), said("order B-18")), "B-18: the user cannot know that"),
        ((said(" "), said(" ")), "message: it is empty"),
        ((said("x", "bored"), said("x", "bored")), "the reply is no such object: state"),
        ((CallFailedError(CallFailure.TIMEOUT, "too slow"),), "too slow"),
    ],
)
def test_two_invalid_replies_or_a_failed_call_spoil_the_conversation(
    answers: tuple[str | Exception, ...], why: str
) -> None:
    messages, user = _played(_Model(*answers), [])
    assert not messages
    assert user.spoilt.startswith("openai/m: ")
    assert why in user.spoilt
    assert user.marks["pandaeval.simulator.ended"] == "failed"


def test_an_invalid_reply_is_retried_once_with_the_reason() -> None:
    model = _Model(said("order B-18"), "```json\n" + said("order A-17") + "\n```")
    messages, user = _played(model, [])
    assert messages == ["order A-17"]
    assert "B-18: the user cannot know that" in model.calls[1].messages[-1]["content"]
    assert model.calls[1].held
    assert not user.spoilt


@pytest.mark.parametrize(("answers", "is_spoilt"), [(("a", "b", "c"), True), (("a", "a", "a"), False)])
def test_repetition_ends_the_conversation_and_spoils_it_unless_the_agent_repeats_too(
    answers: tuple[str, ...], is_spoilt: bool
) -> None:
    model = _Model(*(said(text) for text in ("Money back", "money  back", "MONEY BACK", "Money back")))
    messages, user = _played(model, answers)
    assert len(messages) == 2
    assert bool(user.spoilt) is is_spoilt


@pytest.mark.parametrize(
    ("message", "known", "made_up"),
    [
        ("order A-17, please", ["A-17"], []),
        ("my order is a-17.", ["A-17"], []),
        ("I have 2 of 12", [], []),
        ("call 0171-555 or ada@example.org", ["x"], ["0171-555", "ada@example.org"]),
    ],
)
def test_values_that_appear_in_no_known_text_count_as_invented(
    message: str, known: list[str], made_up: list[str]
) -> None:
    assert invented(message, known) == made_up
