"""Answers streamed by generators, also after the root span has ended."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from pandaeval_otel import using_session
from support.processors import FakeCollector, Recording, attributes_of, processor, provider, spans_of


@pytest.fixture
def telemetry() -> Recording:
    return Recording()


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as fake:
        yield fake


@pytest.fixture
def tracing(collector: FakeCollector, telemetry: Recording) -> TracerProvider:
    made: TracerProvider = provider(processor(collector.endpoint, telemetry))
    return made


def _answer(tracing: TracerProvider, root: Any) -> Iterator[str]:
    with trace.use_span(root), tracing.get_tracer("t").start_as_current_span("chat"):
        yield "a"
        yield "b"


async def _async_answer(tracing: TracerProvider) -> AsyncGenerator[str, None]:
    with tracing.get_tracer("t").start_as_current_span("chat"):
        yield "a"
        yield "b"


def test_a_trace_waits_for_a_generator_that_started_before_its_root_ended(
    tracing: TracerProvider, collector: FakeCollector, telemetry: Recording
) -> None:
    root = tracing.get_tracer("t").start_span("root")
    answer = _answer(tracing, root)
    assert next(answer) == "a"
    root.end()
    assert list(answer) == ["b"]
    tracing.shutdown()
    (sent,) = collector.traces
    assert not sent.fragment
    assert {span.name for span in spans_of(sent)} == {"root", "chat"}
    assert telemetry.balance() == 0


def test_a_generator_that_starts_after_its_root_ended_is_sent_as_a_fragment(
    tracing: TracerProvider, collector: FakeCollector, telemetry: Recording
) -> None:
    with using_session("s-1"):
        root = tracing.get_tracer("t").start_span("root")
    answer = _answer(tracing, root)
    root.end()
    assert tracing.force_flush()
    assert list(answer) == ["a", "b"]
    tracing.shutdown()
    whole, late = collector.traces
    assert (whole.fragment, late.fragment) == (False, True)
    assert whole.trace_id == late.trace_id
    assert [span.name for span in spans_of(late)] == ["chat"]
    assert attributes_of(spans_of(whole)[0])["pandaeval.session.id"] == "s-1"
    assert telemetry.balance() == 0


async def test_an_async_generator_that_is_closed_early_loses_no_span(
    tracing: TracerProvider, collector: FakeCollector, telemetry: Recording
) -> None:
    with tracing.get_tracer("t").start_as_current_span("root"):
        async with contextlib.aclosing(_async_answer(tracing)) as answer:
            assert await anext(answer) == "a"
    tracing.shutdown()
    assert {span.name for sent in collector.traces for span in spans_of(sent)} == {"root", "chat"}
    assert telemetry.balance() == 0
