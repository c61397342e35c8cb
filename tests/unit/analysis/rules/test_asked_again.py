"""Which messages of a user ask for a repeat or a second version of what was said."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.rules.course import asks_again
from tests.unit.analysis.rules.test_grounding import run


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("Could you check again, please?", True),
        ("Refund it as I said!", True),
        ("I am still on hold, hello?", True),
        ("Please double-check my tier.", True),
        ("Can we do the lamp instead?", True),
        ("I also want to add two bags.", True),
        ("Is there any way you can make an exception?", True),
        ("Could we negotiate at least a 10% refund?", True),
        ("I want to cancel anyways.", True),
        ("Kannst du das nochmal wiederholen?", True),
        ("もう一度お願いします", True),
        ("Which ferries go to Oslo against the wind?", False),
        ("Yes, please proceed.", False),
        ("", False),
        (None, False),
    ],
)
def test_requests_for_a_repeat(said: str | None, again: bool) -> None:
    assert asks_again(run(said, "Here it is.")) is again
