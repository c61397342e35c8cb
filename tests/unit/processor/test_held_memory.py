"""Counted memory is close to real memory."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from pandaeval_otel.processor.collecting import Collecting
from pandaeval_otel.processor.settings import Settings


@pytest.mark.parametrize(("spans", "characters"), [(1, 64), (20, 64), (10, 1000)])
def test_counted_memory_is_close_to_allocated_memory(spans: int, characters: int) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("x")
    collecting = Collecting(Settings(held_bytes=1 << 30), lambda *_: None)

    def fill(traces: int) -> None:
        for _ in range(traces):
            root = tracer.start_span("root")
            collecting.take([root.get_span_context()], 0.0)
            for number in range(spans):
                span = tracer.start_span("child", context=trace.set_span_in_context(root))
                span.set_attribute("gen_ai.input.messages", f"{number:08d}" * (characters // 8))
                span.end()
                collecting.take([span.get_span_context(), span], 0.0)

    fill(10)  # imports and caches that are filled only once
    gc.collect()
    tracemalloc.start()
    before, counted = tracemalloc.get_traced_memory()[0], collecting.held_bytes
    fill(100)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    counted = collecting.held_bytes - counted
    assert taken < 1.1 * counted
    assert counted < 1.7 * taken
