"""The span processor never raises or leaks in any order of steps."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from pandaeval_otel import session_end, using_session
from support.examples import examples
from support.processors import Recording, processor, provider, until

NOWHERE = "127.0.0.1:1"
REMOTE = SpanContext(0xFEED, 0xBEEF, is_remote=True, trace_flags=TraceFlags(1))
CHILD_S = 120.0

_number = st.integers(0, 9)
_simple = st.one_of(
    st.tuples(st.just("start"), st.one_of(st.none(), _number)),
    st.tuples(st.just("remote"), st.none()),
    st.tuples(st.just("stamped"), _number),
    st.tuples(st.just("end"), _number),
    st.tuples(st.just("end twice"), _number),
    st.tuples(st.just("forget"), _number),
    st.tuples(st.just("session end"), st.none()),
    st.tuples(st.just("pause"), st.none()),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("shutdown"), st.none()),
)
_steps = st.lists(_simple, max_size=25)


@dataclass
class Application:
    """A provider with our processor and its spans."""

    queue_size: int
    telemetry: Recording = field(default_factory=Recording)
    spans: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.processor = processor(
            NOWHERE, self.telemetry, queue_size=self.queue_size, buffer_bytes=5000, shutdown_timeout=0.02
        )
        self.provider: TracerProvider = provider(self.processor)
        self.tracer = self.provider.get_tracer("t")

    def do(self, step: str, number: int | None) -> None:
        span = self.spans[(number or 0) % len(self.spans)] if self.spans else None
        if step == "start":
            context = Context() if number is None or span is None else set_span_in_context(span, Context())
            self.spans.append(self.tracer.start_span("span", context=context, attributes={"text": "x" * 100}))
        elif step == "remote":
            context = set_span_in_context(NonRecordingSpan(REMOTE), Context())
            self.spans.append(self.tracer.start_span("span", context=context))
        elif step == "stamped":
            with using_session(f"session {number}"):
                self.spans.append(self.tracer.start_span("span"))
        elif step in ("end", "end twice") and span is not None:
            span.end()
            if step == "end twice":
                span.end()
        elif step == "forget" and span is not None:
            self.spans.remove(span)
        elif step == "session end":
            session_end("session 1")
        elif step == "pause":
            time.sleep(0.001)
        elif step == "flush":
            self.provider.force_flush(5)
        elif step == "shutdown":
            self.provider.shutdown()

    def finish(self, alone: bool = True) -> None:
        """Shut down and check all accounts. ``alone``: no thread lost by a fork."""
        self.provider.shutdown()
        # The worker may still run, because the shutdown waits only 20 ms.
        until(lambda: self.telemetry.balance() == 0, f"an account of every span, {self.telemetry.counts},")
        gone = [weakref.ref(self.processor), weakref.ref(self.processor._forwarder)]
        gone += [weakref.ref(self.processor._forwarder.worker)]
        gone += [weakref.ref(span) for span in self.spans if isinstance(span, Span)]
        self.spans.clear()
        self.telemetry.gauges.clear()
        del self.processor, self.provider, self.tracer
        gc.collect()
        until(lambda: not any(each.name == "pandaeval-forwarder" for each in threading.enumerate()), "the thread's end")
        # A thread that is no longer listed may still hold its frames.
        until(lambda: not alone or _gone(gone), "the end of all objects")


def _gone(objects: list[weakref.ref[Any]]) -> bool:
    gc.collect()
    return not any(each() is not None for each in objects)


@pytest.fixture(scope="module", autouse=True)
def only_what_is_new_is_looked_through() -> Iterator[None]:
    """Freeze existing objects, because each example collects garbage."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def silence() -> Iterator[None]:
    """Disable logging, which can deadlock in forked children."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


_quick = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@_quick
@given(_steps, st.sampled_from([2, 8, 1000]))
def test_any_order_of_steps_loses_and_leaks_nothing(steps: list[tuple[str, int | None]], queue_size: int) -> None:
    application = Application(queue_size)
    for step in steps:
        application.do(*step)
    application.finish()


@settings(_quick, max_examples=examples(25))
@given(st.lists(_steps, min_size=2, max_size=4), st.sampled_from([4, 1000]))
def test_any_order_of_steps_on_several_threads_raises_and_leaks_nothing(
    programs: list[list[tuple[str, int | None]]], queue_size: int
) -> None:
    application = Application(queue_size)
    errors: list[BaseException] = []

    def run(program: list[tuple[str, int | None]]) -> None:
        own = Application.__new__(Application)
        own.__dict__.update(application.__dict__, spans=[])
        try:
            for step in program:
                own.do(*step)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    application.finish()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@settings(_quick, max_examples=examples(15))
@given(_steps, _steps, _steps)
def test_any_order_of_steps_before_and_after_a_fork_leaks_nothing(
    before: list[tuple[str, int | None]], child: list[tuple[str, int | None]], after: list[tuple[str, int | None]]
) -> None:
    application = Application(1000)
    for step in before:
        application.do(*step)
    pid = os.fork()
    if pid == 0:
        os._exit(_in_child(application, child))
    for step in after:
        application.do(*step)
    assert _ended(pid) == 0
    application.finish()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.usefixtures("silence")
@settings(_quick, max_examples=examples(5), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(_steps.filter(len), min_size=1, max_size=2), st.lists(_steps, min_size=1, max_size=3))
def test_any_order_of_steps_on_several_threads_during_forks_leaks_nothing(
    programs: list[list[tuple[str, int | None]]], children: list[list[tuple[str, int | None]]]
) -> None:
    """Children fork, too."""
    application = Application(1000)
    enough = threading.Event()
    errors: list[BaseException] = []

    def run(program: list[tuple[str, int | None]]) -> None:
        own = Application.__new__(Application)
        own.__dict__.update(application.__dict__, spans=[])
        try:
            while not enough.is_set():
                for step, number in program:
                    own.do(step, number)
                own.spans.clear()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    try:
        for steps in children:
            pid = os.fork()
            if pid == 0:
                os._exit(_in_child_of_child(application, steps))
            assert _ended(pid) == 0
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert not errors
    application.finish()


def _in_child_of_child(application: Application, steps: list[tuple[str, int | None]]) -> int:
    """Check a child after its own child."""
    pid = os.fork()
    if pid == 0:
        os._exit(_in_child(application, steps, alone=False))
    return _ended(pid) or _in_child(application, steps, alone=False)


def _in_child(application: Application, steps: list[tuple[str, int | None]], alone: bool = True) -> int:
    """Return 0 if a forked child is correct."""
    try:
        application.telemetry.counts.clear()
        application.telemetry._lock = threading.Lock()  # a lost thread may hold the old lock
        application.spans.clear()  # a lost thread may hold their locks
        for step in steps:
            application.do(*step)
        application.finish(alone)
    except AssertionError:
        traceback.print_exc()
        return 1
    except BaseException:
        traceback.print_exc()
        return 2
    return 0


def _ended(pid: int) -> int:
    deadline = time.monotonic() + CHILD_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")
