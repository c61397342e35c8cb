"""Measures the cost per span by size of store, trace and session.

One factor grows at a time. Prints CPU microseconds per span, best of several rounds.

    python tests/lab/bench/growth.py [--spans 12000] [--rounds 3] [--stored 100,10000] [--per-trace 10,100,1000,10000]
        [--per-session 1,10,100,1000] [--page]

``--page`` writes the table into docs/internals/performance.md. For a million traces use ``flat.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from _page import measured, stamp, write
from _table import table
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from synthetic import SIZES, request

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_otel.assembly import CloseRules
from pandaeval_otel.model import Trigger

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.line_here import LineHere

MARK = "growth: python tests/lab/bench/growth.py --page"
_NEVER = CloseRules(quiet=86_400, idle=86_400, max_age=86_400, max_spans=20_000, max_bytes=1 << 30)
_SPANS_A_TRACE, _SPANS_A_REQUEST = 12, 512


def traces(spans: int, number: int, per_session: int, first: int = 0) -> list[ExportTraceServiceRequest]:
    """Return ``number`` traces of about ``spans`` spans, ``per_session`` in a session."""
    made = []
    for at in range(first, first + number):
        source = ExportTraceServiceRequest.FromString(request(1, at, SIZES["1 KB"]))
        [scope] = source.resource_spans[0].scope_spans
        *steps, root = list(scope.spans)
        del scope.spans[:]
        for place in range(spans - 1):
            span = scope.spans.add()
            span.CopyFrom(steps[place % len(steps)])
            span.span_id = (at * 100_003 + place + 1).to_bytes(8, "big")
            span.start_time_unix_nano += place // len(steps) * 10**9
            span.end_time_unix_nano += place // len(steps) * 10**9
        scope.spans.add().CopyFrom(root)
        session = next(pair for pair in scope.spans[-1].attributes if pair.key == "gen_ai.conversation.id")
        session.value.string_value = f"session-{at // per_session}"
        made.append(source)
    return made


def _sent_as(trace: ExportTraceServiceRequest) -> Iterator[bytes]:
    """Return a trace's requests as an SDK exports them."""
    [scope] = trace.resource_spans[0].scope_spans
    spans = list(scope.spans)
    for start in range(0, len(spans), _SPANS_A_REQUEST):
        del scope.spans[:]
        scope.spans.extend(spans[start : start + _SPANS_A_REQUEST])
        yield trace.SerializeToString()


async def cost(spans: int, per_trace: int, per_session: int, stored: int = 0) -> float:
    """Return CPU microseconds per span with ``stored`` traces of 12 spans."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), "normal", max_bytes=1 << 40)
        line = Line(store.reads, Evaluator(load("embedded")), Emitter(("logs", "traces")))
        pipeline = Pipeline(store, LineHere(line), Timing(close=_NEVER, late_window=1e9))
        await _sent(pipeline, (_SPANS_A_TRACE, max(stored, 20), 10), 10_000_000)  # warms up imports and caches
        number = max(1, spans // per_trace)
        requests = [part for each in traces(per_trace, number, per_session) for part in _sent_as(each)]
        before = time.process_time()
        for each in requests:
            await pipeline.traces(each)
        await pipeline.decide_all(Trigger.ROOT_ENDED)
        taken = time.process_time() - before
        await pipeline.stop()
        store.close()
        return taken / number / per_trace * 1e6


async def _sent(pipeline: Pipeline, sizes: tuple[int, int, int], first: int) -> None:
    per_trace, number, per_session = sizes
    for done in range(0, number, 500):
        for each in traces(per_trace, min(500, number - done), per_session, first + done):
            for part in _sent_as(each):
                await pipeline.traces(part)
        await pipeline.decide_all(Trigger.ROOT_ENDED)


def report(spans: int, rounds: int, stored: Sequence[int], per_trace: Sequence[int], per_session: Sequence[int]) -> str:
    spare_the_garbage_collector()
    rows: list[list[object]] = []
    for what, counts, run in (
        ("traces in the store", stored, lambda count: cost(spans, _SPANS_A_TRACE, 10, count)),
        ("spans of a trace", per_trace, lambda count: cost(max(spans, count), count, 10)),
        ("traces of a session", per_session, lambda count: cost(max(spans, 12 * count), _SPANS_A_TRACE, count)),
    ):
        taken = [[asyncio.run(run(count)) for count in counts] for _ in range(rounds)]
        found = [min(each) for each in zip(*taken, strict=True)]
        rows += [[what, count, us, us / found[0]] for count, us in zip(counts, found, strict=True)]
    return table(
        f"CPU time per span as data grows, minimum of {rounds} rounds",
        ["what grows", "to", "CPU µs per span", "x the first"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stored", default="100,10000")
    parser.add_argument("--per-trace", default="10,100,1000,10000")
    parser.add_argument("--per-session", default="1,10,100,1000")
    parser.add_argument("--page", action="store_true", help="write the table into docs/internals/performance.md")
    asked = parser.parse_args()
    counts = ([int(each) for each in text.split(",")] for text in (asked.stored, asked.per_trace, asked.per_session))
    stamped, found = stamp(), report(asked.spans, asked.rounds, *counts)
    print(found)
    if asked.page:
        write(MARK, f"{found}\n\n{measured(stamped, 'tests/lab/bench/growth.py')}")


if __name__ == "__main__":
    main()
