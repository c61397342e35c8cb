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


def test_three_failures_in_a_row_open_it_for_its_rest() -> None:
    clock = Clock()
    breaker = _opened(clock)
    assert not breaker.is_closed
    assert breaker.closed_in() == 30.0
    clock.now += 29.0
    assert breaker.closed_in() == 1.0


def test_a_success_between_failures_keeps_it_closed() -> None:
    breaker = Breaker(30.0)
    for _ in range(5):
        breaker.failed("down")
        breaker.failed("down")
        breaker.succeeded()
    assert breaker.is_closed


def test_after_its_rest_one_call_tries_and_the_others_wait_for_it() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    assert breaker.closed_in() > 0.0, "somebody tries already"
    breaker.succeeded()
    assert breaker.is_closed
    assert breaker.closed_in() == 0.0


def test_one_more_failure_opens_it_again_at_once() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    breaker.failed("down")
    assert breaker.closed_in() == 30.0


def test_who_tries_and_is_called_off_gives_the_place_back() -> None:
    clock = Clock()
    breaker = _opened(clock)
    clock.now += 30.0
    assert breaker.closed_in() == 0.0
    breaker.left()
    assert breaker.closed_in() == 0.0


def test_it_rests_as_long_as_the_provider_asks() -> None:
    clock = Clock()
    breaker = Breaker(30.0, clock)
    for _ in range(3):
        breaker.failed("down", 120.0)
    assert breaker.closed_in() == 120.0
