"""Measures the overhead of span processors on the calling thread and in the whole process.

    python tests/lab/bench/processor.py [--rounds 31] [--spans 400] [--threads 1,8] [--content 11000] [--no-gc]

A span is a trace of its own, with 20 attributes and 11 KB of content. Variants alternate randomly; sinks discard.
Prints the median difference to a bare span. ``--no-gc``: without Python's garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from _table import table
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from pandaeval_otel import PandaEvalSpanProcessor, using_session
from pandaeval_otel.processor.buffer import Buffer
from pandaeval_otel.processor.collecting import Part

CONTENT = 11_000
"""Bytes per span."""
ATTRIBUTES = {f"gen_ai.attribute.{number}": f"value {number}" for number in range(18)}


class _Discard(SpanExporter):
    """Encodes like the OTLP exporter, without the network."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


class _Discarding(Buffer):
    def put(self, part: Part) -> None:
        """Do nothing."""


class _Idle(SpanProcessor):
    """A processor without work."""


@dataclass
class Variant:
    """A provider with µs per span (caller, process) and wall times."""

    name: str
    make: Callable[[], list[Any]]
    session: str = ""
    cpu: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False, resource=Resource.create({"service.name": "bench"}))
        for processor in self.make():
            self.provider.add_span_processor(processor)
        self.tracer = self.provider.get_tracer("bench")


def ours() -> PandaEvalSpanProcessor:
    """Return our processor with a discarding sink."""
    processor = PandaEvalSpanProcessor()
    forwarder = processor._forwarder
    assert forwarder is not None
    forwarder.worker.submission.buffer = _Discarding(0, forwarder._count)
    return processor


def variants() -> list[Variant]:
    return [
        Variant("bare", list),
        Variant("idle", lambda: [_Idle()]),
        Variant("batch", lambda: [BatchSpanProcessor(_Discard())]),
        Variant("two batches", lambda: [BatchSpanProcessor(_Discard()), BatchSpanProcessor(_Discard())]),
        Variant("ours", lambda: [ours()]),
        Variant("ours, stamped", lambda: [ours()], "session-1"),
        Variant("batch + ours", lambda: [BatchSpanProcessor(_Discard()), ours()]),
        Variant("batch + ours, stamped", lambda: [BatchSpanProcessor(_Discard()), ours()], "session-1"),
    ]


def _span(tracer: Tracer, text: str) -> None:
    span = tracer.start_span("chat model")
    span.set_attributes(ATTRIBUTES)
    span.set_attribute("gen_ai.input.messages", text)
    span.set_attribute("gen_ai.output.messages", text)
    span.end()


def _work(
    variant: Variant, spans: int, text: str, barrier: threading.Barrier, out: list[tuple[float, list[float]]]
) -> None:
    walls: list[float] = []
    clock, tracer = time.perf_counter_ns, variant.tracer
    with using_session(variant.session) if variant.session else _nothing():
        barrier.wait()
        began = time.thread_time_ns()
        for _ in range(spans):
            at = clock()
            _span(tracer, text)
            walls.append((clock() - at) / 1000)
        out.append(((time.thread_time_ns() - began) / spans / 1000, walls))


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def measure(variant: Variant, spans: int, threads: int, text: str) -> None:
    """Run a round of a variant."""
    gc.collect()
    began = time.process_time()
    barrier = threading.Barrier(threads)
    out: list[tuple[float, list[float]]] = []
    callers = [
        threading.Thread(target=_work, args=(variant, spans // threads, text, barrier, out)) for _ in range(threads)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    variant.cpu.append(statistics.mean(cpu for cpu, _ in out))
    variant.wall.append(statistics.quantiles([wall for _, walls in out for wall in walls], n=100)[98])
    variant.provider.force_flush(10_000)
    variant.whole.append((time.process_time() - began) * 1e6 / spans)


def report(rounds: int, spans: int, threads: Sequence[int] = (1, 8), content: int = CONTENT) -> str:
    """Return a table per number of threads."""
    return "\n".join(_report(rounds, spans, number, "What people ask. " * (content // 34)) for number in threads)


def _report(rounds: int, spans: int, threads: int, text: str) -> str:
    found = variants()
    for warming in found:
        measure(warming, spans, threads, text)
        warming.cpu, warming.whole, warming.wall = [], [], []
    for _ in range(rounds):
        for variant in random.sample(found, len(found)):
            measure(variant, spans, threads, text)
    for variant in found:
        variant.provider.shutdown()
    bare = found[0].cpu
    added = {variant.name: _beyond(variant.cpu, bare) for variant in found}
    whole = {variant.name: _beyond(variant.whole, found[0].whole) for variant in found}
    rows = [
        [
            variant.name,
            added[variant.name],
            added[variant.name] / added["batch"],
            added[variant.name] - added["batch"] if "batch" in variant.name else "",
            whole[variant.name],
            whole[variant.name] / whole["batch"],
            statistics.median(variant.wall),
        ]
        for variant in found
    ]
    what = (
        f"CPU time that a span processor adds, with threads: {threads}, in {rounds} rounds of {spans} spans; "
        f"a span without a processor takes {statistics.median(bare):.1f} µs"
    )
    head = ["processors", "added, µs a span", "x batch", "more than batch, µs"]
    return table(what, [*head, "whole process, µs", "x batch", "p99 of a span, µs"], rows)


def _beyond(taken: Sequence[float], bare: Sequence[float]) -> float:
    return statistics.median(a - b for a, b in zip(taken, bare, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--spans", type=int, default=400)
    parser.add_argument("--threads", default="1,8")
    parser.add_argument("--content", type=int, default=CONTENT, help="bytes per span")
    parser.add_argument("--no-gc", action="store_true")
    given = parser.parse_args()
    if given.no_gc:
        gc.disable()
    print(report(given.rounds, given.spans, [int(each) for each in given.threads.split(",")], given.content))


if __name__ == "__main__":
    main()
