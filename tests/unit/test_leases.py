"""A fork while another thread is in the midst of a shutdown: the child's books balance, and its threads end."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from support.processors import Recording, emit, processor, provider

from pandaeval_otel import PandaEvalLogProcessor
from pandaeval_otel.forwarder import Forwarder
from pandaeval_otel.handover import Handover
from pandaeval_otel.leases import Lease, _is_last

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

NOWHERE = "127.0.0.1:1"
_WATCHED: list[Any] = [Handover.shutdown, Lease.end, _is_last, Forwarder.shutdown, Forwarder._close]


class Application:
    """Spans and, with the same settings and so the same forwarder, logs; nothing takes them."""

    def __init__(self) -> None:
        self.telemetry = Recording()
        options: dict[str, Any] = {"telemetry": self.telemetry, "shutdown_timeout": 0.05}
        self.tracing = provider(processor(NOWHERE, **options))
        self.logging = LoggerProvider(shutdown_on_exit=False)
        self.logging.add_log_record_processor(PandaEvalLogProcessor(NOWHERE, **options))

    def play(self) -> None:
        """A span, and an event in it."""
        span = self.tracing.get_tracer("t").start_span("root")
        emit(self.logging, span, {"said": "this"})
        span.end()


def line_by_line(application: Application) -> Iterator[str]:
    """Shuts its tracing down on another thread, which stands still before each line of ours that it passes."""
    codes: set[CodeType] = {function.__code__ for function in _WATCHED}
    places: list[str] = []
    stands, goes = threading.Semaphore(0), threading.Semaphore(0)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code not in codes:
            return None
        places.append(f"{frame.f_code.co_qualname}:{frame.f_lineno} {event}")
        stands.release()
        goes.acquire()
        return trace

    def shut_down() -> None:
        sys.settrace(trace)
        application.tracing.shutdown()
        sys.settrace(None)
        stands.release()

    thread = threading.Thread(target=shut_down)
    thread.start()
    stands.acquire()
    while places:  # at its end there is none
        yield places.pop()
        goes.release()
        stands.acquire()
    thread.join()


def in_child(application: Application) -> int:
    """0, if all that ends in the child is accounted for once it has shut down, and no thread is left."""
    try:
        application.telemetry.counts.clear()
        application.play()
        application.tracing.shutdown()
        application.logging.shutdown()
        telemetry = application.telemetry
        assert (telemetry.of("spans", "ended"), telemetry.of("logs", "ended")) == (1, 1), telemetry.counts
        assert (telemetry.balance(), telemetry.balance("logs")) == (0, 0), telemetry.counts
        assert not [each for each in threading.enumerate() if each.name == "pandaeval-forwarder"]
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@pytest.mark.parametrize("last", [False, True], ids=["shared", "last"])
def test_a_fork_at_any_line_of_a_shutdown(last: bool) -> None:
    application = Application()
    application.play()
    if last:
        application.logging.shutdown()
    failed, seen = [], 0
    for place in line_by_line(application):
        seen += 1
        pid = os.fork()
        if pid == 0:
            sys.settrace(None)
            os._exit(in_child(application))
        if os.waitpid(pid, 0)[1]:
            failed.append(place)
    application.logging.shutdown()
    assert seen > 10
    assert failed == []
    assert application.telemetry.balance() == 0
