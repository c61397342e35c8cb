"""Time limits on calls, on any thread."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pandaeval_collector.base.time_limit import LIMIT, OverTimeError


def _spin() -> None:
    LIMIT.step = "trace.slow"
    while True:
        pass


@pytest.fixture
def _own_handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(LIMIT, "_listens", False)
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("work", [_spin, lambda: time.sleep(100), lambda: re.match("(a+)+b", "a" * 60)])
def test_a_call_over_its_time_limit_is_interrupted(work: object) -> None:
    with pytest.raises(OverTimeError, match=r"line\.timeout"):
        LIMIT.run(0.05, work)  # type: ignore[arg-type]


def test_the_error_names_the_current_step() -> None:
    with pytest.raises(OverTimeError, match=r"trace\.slow was under way"):
        LIMIT.run(0.05, _spin)


def test_a_call_that_catches_the_interrupt_is_interrupted_again() -> None:
    ended = 0

    def stubborn() -> None:
        nonlocal ended
        while True:
            try:
                _spin()
            except OverTimeError:
                ended += 1
                assert LIMIT.is_over
                if ended == 2:
                    raise

    with pytest.raises(OverTimeError):
        LIMIT.run(0.05, stubborn)
    assert not LIMIT.is_over


def test_an_existing_timer_continues_after_the_call() -> None:
    rang = threading.Event()
    handler = signal.signal(signal.SIGALRM, lambda *_: rang.set())
    others = signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        assert LIMIT.run(60.0, lambda: 5) == 5
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3
        assert rang.wait(30)
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *others)


@pytest.mark.usefixtures("_own_handler")
def test_calls_on_other_threads_are_interrupted_after_listen() -> None:
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(LIMIT.run, 0.01, lambda: time.sleep(0.05) or 5).result() == 5
        LIMIT.listen()
        with pytest.raises(OverTimeError):
            thread.submit(LIMIT.run, 0.05, _spin).result(60)
        assert thread.submit(LIMIT.run, 5.0, lambda: 5).result() == 5
