"""Pauses of a failing provider."""

from __future__ import annotations

from pandaeval_collector.jobs.outcome import Pauses, RecordBudgets
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.judge.known_models import LEAST_RECORD, SMALLER_RECORD


def test_after_a_pause_one_job_tests_the_judge_before_all_jobs_continue() -> None:
    pauses = Pauses(interactive=False)
    assert pauses.room(0.0, 16) == 16
    pauses.begin(30.0)
    assert pauses.room(29.0, 16) == 0
    assert pauses.room(30.0, 16) == 1
    pauses.answered()
    assert pauses.room(30.0, 16) == 16


def test_failures_within_one_rest_start_only_one_pause() -> None:
    pauses = Pauses(interactive=True)
    for later in (0.0, 0.2, 0.4):
        pauses.begin(3.0 + later)
    assert not pauses.given_up
    pauses.begin(6.5)
    assert pauses.given_up


def test_an_interactive_run_waits_longer_for_a_judge_that_answered_once() -> None:
    pauses = Pauses(interactive=True)
    pauses.answered()
    for number in range(1, 9):
        pauses.begin(3.0 * number)
    assert not pauses.given_up


def test_an_interactive_run_gives_up_with_the_cause_and_stops_waiting() -> None:
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


async def test_the_record_budget_shrinks_for_a_model_that_found_a_record_too_long() -> None:
    budgets = RecordBudgets()
    whole = await budgets.of("m")
    assert budgets.was_too_long("m", whole) == SMALLER_RECORD
    assert await budgets.of("m") == SMALLER_RECORD
    assert await budgets.of("other") == whole
    assert budgets.was_too_long("m", 1500) == 1000
    assert budgets.was_too_long("m", whole) == SMALLER_RECORD, "a call that was already running"
    assert await budgets.of("m") == 1000
    assert budgets.was_too_long("m", 450) == LEAST_RECORD


async def test_an_unknown_record_budget_is_the_default() -> None:
    async def dead(model: str) -> int:
        raise CallFailedError(CallFailure.UNAVAILABLE, "no process")

    assert await RecordBudgets(dead).of("m") == await RecordBudgets().of("m")
