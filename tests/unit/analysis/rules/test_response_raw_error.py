"""A program's raw error is no answer; what only speaks of one is."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.rules.response import Ending, response
from pandaeval_otel.model import Kind, Span, Trace, Turn

ASKED = "Book the cheapest ferry."
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/app/agent.py", line 88, in run\n'
    "    reply = result['text']\n"
    "KeyError: 'text'"
)
CHAINED = f"{TRACEBACK}\n\nThe above exception was the direct cause of the following exception:\n\n{TRACEBACK}"
RAW = [
    TRACEBACK,
    f"{TRACEBACK}\n",
    "TypeError: Cannot read properties of undefined (reading 'content')",
    "openai.RateLimitError: Rate limit reached for requests",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests', 'type': 'requests'}}",
    "Agent stopped due to max iterations.",
    "Agent stopped due to iteration limit or time limit.",
]
ANSWERS = [
    "Error: I could not find your booking. Which number is it?",
    "The booking failed with KeyError: 'text'. Shall I try again?",
    f"{TRACEBACK}\nSo the ferry could not be booked. Shall I try again?",
    "I stopped: the agent of the line stopped due to max iterations.",
    "Error code: 429 means that too many requests were made.",
    "TypeError: a word\nThen the ferry was booked.",
    "Exception: the 9:30 ferry runs on Sundays only.",
]


def ending(answer: str, asked: str = ASKED) -> Ending | None:
    turns = (Turn(asked, answer, "root"),)
    spans = (Span("t", "root", "", "run", Kind.AGENT, 0, 5),)
    found = response(Trace("t", spans, "root", input=asked, output=answer, turns=turns))
    assert found is not None
    assert (found.score == 0.0) == (found.ending is not None)
    return found.ending


@pytest.mark.parametrize("answer", RAW)
def test_a_raw_error_is_an_error(answer: str) -> None:
    assert ending(answer) is Ending.ERROR


@pytest.mark.parametrize("answer", ANSWERS)
def test_words_to_the_user_are_an_answer(answer: str) -> None:
    assert ending(answer) is None


@pytest.mark.parametrize("asked", ["What does this code print?", "Which exception is raised?", "Why does it fail?"])
def test_who_asks_about_errors_may_get_one(asked: str) -> None:
    assert ending("KeyError: 'text'", asked) is None


def test_of_two_that_are_chained_the_last_is_told() -> None:
    turns = (Turn(ASKED, CHAINED, "root"),)
    spans = (Span("t", "root", "", "run", Kind.AGENT, 0, 5),)
    found = response(Trace("t", spans, "root", input=ASKED, output=CHAINED, turns=turns))
    assert found is not None
    assert (found.ending, found.span_ids) == (Ending.ERROR, ("root",))
    assert found.reason.startswith("the answer is a raw error: KeyError")
