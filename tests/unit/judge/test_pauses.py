"""Pauses of a failing provider."""

from __future__ import annotations

from pandaeval_collector.jobs.outcome import Pauses, RecordBudgets
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.judge.known_models import LEAST_RECORD, SMALLER_RECORD


def test_all_jobs_wait_and_then_one_finds_out() -> None:
    pauses = Pauses(interactive=False)
    assert pauses.room(0.0, 16) == 16
    pauses.begin(30.0)
    assert pauses.room(29.0, 16) == 0
    assert pauses.room(30.0, 16) == 1
    pauses.answered()
    assert pauses.room(30.0, 16) == 16


def test_calls_of_one_rest_begin_one_pause() -> None:
    pauses = Pauses(interactive=True)
    for later in (0.0, 0.2, 0.4):
        pauses.begin(3.0 + later)
    assert not pauses.given_up
    pauses.begin(6.5)
    assert pauses.given_up


def test_a_judge_that_answered_once_is_waited_for_longer() -> None:
    pauses = Pauses(interactive=True)
    pauses.answered()
    for number in range(1, 9):
        pauses.begin(3.0 * number)
    assert not pauses.given_up


def test_who_gives_up_says_what_was_wrong_and_waits_no_more() -> None:
    pauses = Pauses(interactive=True)
    pauses.failed(CallFailedError(CallFailure.UNAVAILABLE, "Connection error."))
    pauses.failed(CallFailedError(CallFailure.COOLDOWN, "it rests"))
    pauses.begin(3.0)
    pauses.begin(6.0)
    assert "Connection error." in pauses.given_up
    assert pauses.room(4.0, 16) == 16


def test_a_collector_never_gives_up() -> None:
    pauses = Pauses(interactive=False)
    for number in range(1, 50):
        pauses.begin(30.0 * number)
    assert not pauses.given_up


async def test_a_model_that_refuses_a_record_is_shown_less_of_it_from_then_on() -> None:
    budgets = RecordBudgets()
    whole = await budgets.of("m")
    assert budgets.was_too_long("m", whole) == SMALLER_RECORD
    assert await budgets.of("m") == SMALLER_RECORD
    assert await budgets.of("other") == whole
    assert budgets.was_too_long("m", 1500) == 1000
    assert budgets.was_too_long("m", whole) == SMALLER_RECORD, "of a call that was under way"
    assert await budgets.of("m") == 1000
    assert budgets.was_too_long("m", 450) == LEAST_RECORD


async def test_a_budget_that_nobody_can_tell_is_the_usual_one() -> None:
    async def dead(model: str) -> int:
        raise CallFailedError(CallFailure.UNAVAILABLE, "no process")

    assert await RecordBudgets(dead).of("m") == await RecordBudgets().of("m")
