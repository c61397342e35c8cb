"""Raw errors as answers."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.rules.error_answers import raw_error
from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_lab.drill.faults.course import _ERRORS
from tests.unit.analysis.rules.test_grounding import run


@pytest.mark.parametrize(
    "answer",
    [
        *_ERRORS,
        "openai.RateLimitError: too many requests",
        "java.io.IOException: closed",
        "API Error: Server error mid-response. The response above may be incomplete.",
        "Agent reached maximum iterations 20 without completing the task",
        "Agent failed to reach a final answer. This is likely a bug - please report it.",
    ],
)
def test_a_raw_error_is_no_answer(answer: str) -> None:
    found = response(run("Which ferries go to Oslo?", answer))
    assert isinstance(found, Score)
    assert (found.value, found.label, found.metadata["error"]) == (0.0, "error", answer.splitlines()[-1])


@pytest.mark.parametrize(
    ("user", "answer"),
    [
        ("Which error does it raise?", "TypeError: unsupported operand"),
        ("What went wrong?", "The call failed with TypeError: unsupported operand."),
        ("Go on.", "Traceback (most recent call last): that is what one sees.\n\nTry again later, please."),
        ("Go on.", "Error: none of the ferries goes today."),
        ("Go on.", "Done."),
        ("Go on.", "The agent reached the final answer of 42 in 3 iterations."),
    ],
)
def test_answer_about_errors_is_no_raw_error(user: str, answer: str) -> None:
    assert not raw_error(answer, user)


@pytest.mark.parametrize("answer", ["(empty response)", "[no output]"])
def test_placeholder_is_an_empty_answer_unless_the_user_requested_it(answer: str) -> None:
    found = response(run("Write the daily summary.", answer))
    assert isinstance(found, Score)
    assert (found.value, found.label) == (0.0, "empty_answer")
    assert response(run(f"Say {answer} if nothing happened.", answer)) == Score(1.0, "the run ended with an answer")
