"""Raw errors as answers."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metrics.trace.response import raw_error, response
from pandaeval_lab.drill.faults.course import _ERRORS
from tests.unit.analysis.rules.test_grounding import run


@pytest.mark.parametrize(
    "answer", [*_ERRORS, "openai.RateLimitError: too many requests", "java.io.IOException: closed"]
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
    ],
)
def test_an_answer_about_errors_is_one(user: str, answer: str) -> None:
    assert not raw_error(answer, user)
