"""Measures CPU time per span and stage, from OTLP bytes to the outbox.

Runs in this process on one core, with requests of ten traces. Excludes fsync waits.

    python tests/lab/bench/line.py [--spans 60000] [--durability full]

``--cpu`` prints only phases for one size, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

from _stages import Stages
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE, Stream

import pandaeval_collector.pipeline.intake as intake_module
import pandaeval_collector.pipeline.line.stored_traces as reading_module
import pandaeval_otel.normal.trace as trace_module
from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.sessions import SessionPlaces
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store, StoreReader
from pandaeval_collector.store.commits import Writer
from pandaeval_collector.store.connection import Durability
from pandaeval_otel.assembly import CloseRules
from pandaeval_otel.model import Trigger

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.line_here import LineHere

TRACES_PER_REQUEST = 10
_CALLERS = 8
_NEVER = CloseRules(quiet=86_400, idle=86_400, max_age=86_400)


@dataclass(slots=True)
class Measured:
    """CPU microseconds per span and stage, and phase seconds."""

    spans: int
    stages: dict[str, dict[str, float]]
    cpu: dict[str, float]
    wall: dict[str, float]


def measure(span_bytes: int, spans: int, durability: Durability = "full", *, watched: bool = True) -> Measured:
    """Run on a new store."""
    stages = Stages()
    if watched:
        _watch(stages)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(_run(Path(folder), span_bytes, spans, durability, stages))
    finally:
        stages.release()


async def _run(folder: Path, span_bytes: int, spans: int, durability: Durability, stages: Stages) -> Measured:
    store = Store(folder, durability)
    evaluator = Evaluator(load("embedded"))
    evaluator.embedder.embed(["the model is read once"])
    spare_the_garbage_collector()  # as the collector and its scoring workers do
    LIMIT.listen()
    line = Line(store.reads, evaluator, Emitter(("logs", "traces")))
    pipeline = Pipeline(store, LineHere(line), Timing(close=_NEVER))
    requests = spans // SPANS_PER_TRACE // TRACES_PER_REQUEST
    ready = iter([each for each, _ in zip(Stream(TRACES_PER_REQUEST, span_bytes), range(requests), strict=False)])
    measured = Measured(requests * TRACES_PER_REQUEST * SPANS_PER_TRACE, {}, {}, {})

    async def caller(source: Iterator[bytes]) -> None:
        for request in source:
            await pipeline.traces(request)

    async def phase(name: str, work: Awaitable[object]) -> None:
        stages.spent = Counter()
        wall, cpu = time.perf_counter(), time.process_time()
        await work
        measured.wall[name], measured.cpu[name] = time.perf_counter() - wall, time.process_time() - cpu
        measured.stages[name] = {stage: ns / 1e3 / measured.spans for stage, ns in stages.spent.items()}

    await phase("accept", asyncio.gather(*(caller(ready) for _ in range(_CALLERS))))
    await phase("decide", pipeline.decide_all(Trigger.ROOT_ENDED))
    await phase("close sessions", pipeline.close_all(Trigger.IDLE))
    await pipeline.stop()
    assert pipeline.telemetry.total("pandaeval.traces", "decided") * SPANS_PER_TRACE == measured.spans
    store.close()
    return measured


def _watch(stages: Stages) -> None:
    stages.watch(intake_module, "split_traces", "split")
    stages.watch(Store, "append", "store append")
    stages.watch(Writer, "_commit", "commit")
    stages.watch(StoreReader, "chunks", "read")
    stages.watch(reading_module, "gather", "decode")
    stages.watch(trace_module, "normalize", "normalise")
    stages.watch(reading_module, "build_trace", "build")
    stages.watch(Evaluator, "embed", "embed")
    for name in ("trace", "with_others", "session"):
        stages.watch(Evaluator, name, "metrics")
    stages.watch(SessionPlaces, "file", "sessions")
    stages.watch(Emitter, "add", "encode")
    stages.watch(Result, "to_json", "result JSON")


def report(spans: int, durability: Durability = "full") -> str:
    """Return the tables of both sizes."""
    found = {name: measure(size, spans, durability) for name, size in SIZES.items()}
    phases = ("accept", "decide", "close sessions")
    rows: list[list[object]] = []
    for name in phases:
        totals = [each.cpu[name] * 1e6 / each.spans for each in found.values()]
        if name != "close sessions":
            stages = dict.fromkeys(stage for each in found.values() for stage in each.stages[name])
            rows += [[name, stage, *(each.stages[name].get(stage, 0.0) for each in found.values())] for stage in stages]
            rest = [total - sum(each.stages[name].values()) for total, each in zip(totals, found.values(), strict=True)]
            rows.append([name, "rest", *rest])
        rows.append([name, "**all**", *totals])
    first = table("CPU microseconds per span", ["phase", "stage", *found], rows)
    rates = [
        [
            size,
            each.spans / each.cpu["decide"],
            each.spans / SPANS_PER_TRACE / each.cpu["decide"],
            each.spans / each.wall["decide"],
            each.spans / (each.cpu["accept"] + each.cpu["decide"]),
        ]
        for size, each in found.items()
    ]
    head = [
        "size",
        "scoring: spans per CPU s",
        "scoring: traces per CPU s",
        "scoring: spans per second",
        "receiving and scoring: spans per CPU s",
    ]
    second = table("Throughput from stored spans to results that are ready for export", head, rates)
    return "\n".join([first, second, _aims(*found.values())])


def _aims(small: Measured, large: Measured) -> str:
    """Return aims beside results. ``small``: 1 KB spans; ``large``: 5 KB."""
    whole = [each.spans / (each.cpu["accept"] + each.cpu["decide"]) for each in (small, large)]
    costs = {"metrics, 1 KB": (8, small.stages["decide"]["metrics"]),
             "deciding, 1 KB": (60, small.cpu["decide"] * 1e6 / small.spans)}  # fmt: skip
    rates = {"receiving and scoring, 1 KB": (14_000, whole[0]), "receiving and scoring, 5 KB": (9_000, whole[1])}
    rows: list[list[object]] = []
    for what, (aim, here) in costs.items():
        rows.append([what, f"at most {aim} µs a span", f"{here:.1f} µs", "met" if here <= aim else "**missed**"])
    for what, (aim, here) in rates.items():
        rows.append([what, f"{aim:,} spans a CPU second", f"{here:,.0f}", "met" if here >= aim else "**missed**"])
    return table("Measured values compared with aims", ["measure", "aim", "measured", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=60_000)
    parser.add_argument("--durability", choices=("full", "normal", "off"), default="full")
    parser.add_argument("--cpu", type=int, metavar="SPAN_BYTES")
    asked = parser.parse_args()
    if asked.cpu is not None:
        alone = measure(asked.cpu, asked.spans, asked.durability, watched=False)
        print(json.dumps({phase: cpu * 1e6 / alone.spans for phase, cpu in alone.cpu.items()}))
        return
    print(report(asked.spans, asked.durability))


if __name__ == "__main__":
    main()
