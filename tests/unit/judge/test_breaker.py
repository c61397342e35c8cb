"""The circuit breaker of a provider."""

from __future__ import annotations

from pandaeval_collector.judge.route import Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _opened(clock: Clock, rest: float = 30.0) -> Breaker:
    breaker = Breaker(rest, clock)
    for _ in range(3):
        assert breaker.closed_in() == 0.0
        breaker.failed("down")
    return breaker


def test_three_failures_in_a_row_open_the_breaker_for_its_rest_time() -> None:
    clock = Clock()
    breaker = _opened(clock)
    assert not breaker.is_closed
    assert breaker.closed_in() == 30.0
    clock.now += 29.0
    assert breaker.closed_in() == 1.0


def test_a_success_between_failures_keeps_the_breaker_closed() -> None:
    breaker = Breaker(30.0)
    for _ in range(5):
        breaker.failed("down")
        breaker.failed("down")
        breaker.succeeded()
    assert breaker.is_closed


def test_after_the_rest_one_call_tries_while_other_calls_wait() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    assert breaker.closed_in() > 0.0, "another call is already trying"
    breaker.succeeded()
    assert breaker.is_closed
    assert breaker.closed_in() == 0.0


def test_a_failure_after_the_rest_opens_the_breaker_again_at_once() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    breaker.failed("down")
    assert breaker.closed_in() == 30.0


def test_a_cancelled_trial_call_lets_the_next_call_try() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    breaker.left()
    assert breaker.closed_in() == 0.0


def test_the_breaker_uses_the_rest_time_of_the_provider() -> None:
    clock = Clock()
    breaker = Breaker(30.0, clock)
    for _ in range(3):
        breaker.failed("down", 120.0)
    assert breaker.closed_in() == 120.0
