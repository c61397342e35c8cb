"""User messages that request a repeat."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pandaeval_collector.analysis.rules.asked_again import asks_again
from tests.unit.analysis.rules.test_grounding import run


@pytest.mark.parametrize(
    ("message", "again"),
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
def test_messages_that_request_a_repeat_are_recognized(message: str | None, again: bool) -> None:
    assert asks_again(run(message, "Here it is.")) is again


_PHRASES = """
again / once more / one more time / repeat / repeat it / repeat that / repeat this / resend / re-send / recheck
re-check / reconfirm / re-confirm / rephrase / re-phrase / restate / re-state / double check / double-check
as I said / like I said / still / hello? / are you there / are you still there / instead / actually / another
changed my mind / also / as well / in addition / anyway / anyways / any way / at least / reconsider / reconsidering
an exception / an exceptions / any exception / any exceptions / are you sure / nochmal / nochmals / noch einmal
wiederhole / wiederholen / immer noch / stattdessen / encore / encore une fois / répéter / toujours / plutôt
otra vez / de nuevo / repita / todavía / en cambio / di nuovo / ancora / ripeti / de novo / ainda
"""


@pytest.mark.parametrize("phrase", [each.strip() for line in _PHRASES.split("\n") for each in line.split("/") if each])
@pytest.mark.parametrize("cased", [str.lower, str.upper])
def test_each_phrase_is_found_in_any_case(phrase: str, cased: Callable[[str], str]) -> None:
    message = cased(f"Well, {phrase}{'' if phrase.endswith('?') else ' '}so")  # "hello?" is followed by a letter
    assert asks_again(run(message, "Here it is."))
