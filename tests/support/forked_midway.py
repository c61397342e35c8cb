"""Forks at each line of a shutdown or stamp: ``python -m support.forked_midway WHAT``.

Prints a JSON list of failures in children.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider

from pandaeval_otel import PandaEvalLogProcessor, PandaEvalSpanProcessor, using_session
from pandaeval_otel.processor._scope import ContextIds, stamp
from pandaeval_otel.processor.forwarder import Forwarder, Lease, _is_last
from pandaeval_otel.processor.processors import Handover
from support.processors import Recording, emit, processor, provider

NOWHERE = "127.0.0.1:1"
CHILD_S = 120
_AT_ONCE, _PATIENCE_S = 2, 10
_SHUTDOWN: list[Any] = [Handover.shutdown, Lease.end, _is_last, Forwarder.shutdown, Forwarder._close]
_STAMPING: list[Any] = [PandaEvalSpanProcessor.on_start, stamp, ContextIds.__post_init__]


class Application:
    """Spans and logs with one forwarder and no collector."""

    def __init__(self) -> None:
        self.telemetry = Recording()
        options: dict[str, Any] = {"telemetry": self.telemetry, "shutdown_timeout": 0.05}
        self.tracing = provider(processor(NOWHERE, **options))
        self.logging = LoggerProvider(shutdown_on_exit=False)
        self.logging.add_log_record_processor(PandaEvalLogProcessor(NOWHERE, **options))

    def play(self) -> None:
        """Emit a span with an event."""
        with using_session("s"):
            span = self.tracing.get_tracer("t").start_span("root")
        emit(self.logging, span, {"said": "this"})
        span.end()


def line_by_line(run: Callable[[], Any], watched: list[Any]) -> Iterator[str]:
    """Run on another thread that pauses before each watched line."""
    codes: set[CodeType] = {function.__code__ for function in watched}
    places: list[str] = []
    stands, goes = threading.Semaphore(0), threading.Semaphore(0)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        caller = frame.f_back
        if frame.f_code not in codes and not (caller is not None and caller.f_code in codes):
            return None
        places.append(f"{frame.f_code.co_qualname}:{frame.f_lineno} {event}")
        stands.release()
        goes.acquire()
        return trace

    def traced() -> None:
        sys.settrace(trace)
        run()
        sys.settrace(None)
        stands.release()

    thread = threading.Thread(target=traced)
    thread.start()
    stands.acquire()
    while places:  # empty when the thread has ended
        yield places.pop()
        goes.release()
        stands.acquire()
    thread.join()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)


def in_child(application: Application) -> int:
    """Return 0 if the child accounts for all items and leaves no thread."""
    try:
        application.telemetry.counts.clear()
        application.play()
        application.tracing.shutdown()
        application.logging.shutdown()
        telemetry = application.telemetry
        _wait_until(lambda: (telemetry.balance(), telemetry.balance("logs")) == (0, 0))  # the worker drops the rest
        assert (telemetry.of("spans", "ended"), telemetry.of("logs", "ended")) == (1, 1), telemetry.counts
        assert (telemetry.balance(), telemetry.balance("logs")) == (0, 0), telemetry.counts
        assert not [each for each in threading.enumerate() if each.name == "pandaeval-forwarder"]
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def failures(application: Application, run: Callable[[], Any], watched: list[Any]) -> list[str]:
    """Return the lines at which a forked child failed. Two children run at a time."""
    failed, seen = [], 0
    children: dict[int, str] = {}

    def wait_for_the_oldest() -> None:
        pid = next(iter(children))
        place = children.pop(pid)
        if os.waitpid(pid, 0)[1]:
            failed.append(place)

    for place in line_by_line(run, watched):
        seen += 1
        if len(children) == _AT_ONCE:
            wait_for_the_oldest()
        pid = os.fork()
        if pid == 0:
            sys.settrace(None)
            signal.alarm(CHILD_S)
            os._exit(in_child(application))
        children[pid] = place
    while children:
        wait_for_the_oldest()
    assert seen > 10
    return failed


def shutdown(last: bool) -> list[str]:
    """Shut down. ``last``: the forwarder has no other user."""
    application = Application()
    application.play()
    if last:
        application.logging.shutdown()
    failed = failures(application, application.tracing.shutdown, _SHUTDOWN)
    application.logging.shutdown()
    assert application.telemetry.balance() == 0
    return failed


def stamped() -> list[str]:
    application = Application()
    failed = failures(application, application.play, _STAMPING)
    application.tracing.shutdown()
    application.logging.shutdown()
    assert application.telemetry.balance() == 0
    return failed


WHAT: dict[str, Callable[[], list[str]]] = {
    "shutdown": lambda: shutdown(False),
    "last shutdown": lambda: shutdown(True),
    "stamp": stamped,
}

if __name__ == "__main__":
    print(json.dumps(WHAT[sys.argv[1]]()))
