"""No connection activity during a fork."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pandaeval_otel.processor.collecting import Part
from pandaeval_otel.processor.settings import settings
from pandaeval_otel.processor.submission import Submission

LONG_S = 30.0


class Channel:
    """A silent connection that closes after ``may_close``."""

    def __init__(self) -> None:
        self.closing, self.may_close, self.closed = threading.Event(), threading.Event(), threading.Event()

    def unary_unary(self, *_: Any) -> Channel:
        return self

    def future(self, *_: Any, **__: Any) -> Channel:
        return self

    def add_done_callback(self, _: Any) -> None: ...

    def done(self) -> bool:
        return False

    def cancel(self) -> None: ...

    def close(self) -> None:
        self.closing.set()
        assert self.may_close.wait(LONG_S)
        self.closed.set()


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def submission(channel: Channel) -> Submission:
    made = Submission(settings(), lambda *_: None, lambda: None, lambda _: channel)  # type: ignore[arg-type,return-value]
    made.buffer.put(Part(b"x" * 16, b"data", 1))
    made.step()
    return made


def test_a_fork_waits_for_a_connection_that_is_being_closed(submission: Submission, channel: Channel) -> None:
    worker = threading.Thread(target=submission.close)
    worker.start()
    assert channel.closing.wait(LONG_S)
    submission.pause(0.01)
    submission.resume()
    assert not channel.closed.is_set()  # the pause ended at its timeout, and the worker still holds the gate
    threading.Timer(0.05, channel.may_close.set).start()
    more = submission.pause(LONG_S)
    assert channel.closed.is_set()
    assert more > 0  # gRPC's own threads have not finished
    submission.resume()
    worker.join()


def test_an_unanswered_request_is_scheduled_again_after_a_fork(submission: Submission, channel: Channel) -> None:
    channel.may_close.set()
    assert submission.wait_s() is None
    assert submission.pause(LONG_S) > 0
    assert channel.closed.is_set()
    submission.resume()
    assert submission.wait_s() is not None
    assert submission.buffer.settled == 0


def test_a_thread_that_forks_ends_only_its_own_pause(submission: Submission, channel: Channel) -> None:
    channel.may_close.set()
    submission.pause(LONG_S)

    def other() -> None:
        submission.pause(0.01)
        submission.resume()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    stepped = threading.Event()
    worker = threading.Thread(target=lambda: (submission.step(), stepped.set()))
    worker.start()
    assert not stepped.wait(0.05)
    submission.resume()
    assert stepped.wait(LONG_S)
    worker.join()


def test_a_pause_without_a_connection_returns_at_once() -> None:
    idle = Submission(settings(), lambda *_: None, lambda: None)
    assert idle.pause(LONG_S) == 0.0
    idle.resume()


def test_a_shutdown_logs_lost_traces_once(
    submission: Submission, channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    channel.may_close.set()
    submission.close()
    assert caplog.messages == [
        "traces lost, because the collector at localhost:4327 did not accept them before shutdown: 1 "
        "(no answer in time)"
    ]
    submission.close()
    assert len(caplog.messages) == 1
