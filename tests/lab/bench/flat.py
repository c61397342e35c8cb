"""Measures whether the cost per span stays constant as the store grows.

Prints CPU microseconds per span at each power of ten. ``--data`` keeps store and figures, so that runs continue.

    python tests/lab/bench/flat.py [--traces 100000] [--data DIR] [--for SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from _table import table
from synthetic import SIZES, SPANS_PER_TRACE, Stream

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

BLOCK = 1000
_NEVER = CloseRules(quiet=86_400, idle=86_400, max_age=86_400)
_SHOWN = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_AVERAGED = 5


async def run(folder: Path, traces: int, seconds: float, late_window: float) -> list[dict[str, float]]:
    """Continue to ``traces`` or the time limit; return all blocks."""
    log = folder / "blocks.jsonl"
    blocks = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = len(blocks) * BLOCK
    store = Store(folder / "data", "normal", max_bytes=1 << 40)
    # A collector deletes encoded copies after sending. This benchmark does not send, so it deletes them below.
    line = Line(store.reads, Evaluator(load("embedded")), Emitter(("logs", "traces")))
    pipeline = Pipeline(store, LineHere(line), Timing(close=_NEVER, late_window=late_window))
    stream = Stream(10, SIZES["1 KB"], first=done)
    spare_the_garbage_collector()  # as the collector does
    ends = time.monotonic() + seconds
    with log.open("a") as notes:
        while done < traces and time.monotonic() < ends:
            cpu = time.process_time()
            for _ in range(BLOCK // 10):
                await pipeline.traces(next(stream))
            await pipeline.decide_all(Trigger.ROOT_ENDED)
            cpu = time.process_time() - cpu
            done += BLOCK
            for signal in ("logs", "traces"):
                store.outbox.forget_sent(signal, 1 << 62, limit=1 << 40).result()
            await pipeline._upkeep.run()
            # These sessions have ended. The next blocks have new sessions.
            await pipeline._sessions.close_all(Trigger.IDLE)
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            block = {"traces": done, "us": cpu * 1e6 / BLOCK / SPANS_PER_TRACE, "rss": resident}
            block["disk"] = store.size_bytes() / 1e6
            blocks.append(block)
            notes.write(json.dumps(block) + "\n")
            notes.flush()
    await pipeline.stop()
    store.close()
    return blocks


def shown(blocks: list[dict[str, float]]) -> str:
    rows = []
    for traces in _SHOWN:
        at = [block for block in blocks if block["traces"] <= traces][-_AVERAGED:]
        if at and at[-1]["traces"] == traces:
            us = sorted(block["us"] for block in at)[len(at) // 2]
            rows.append([traces, us, at[-1]["rss"], at[-1]["disk"]])
    head = ["traces so far", "CPU µs per span", "peak memory MB", "store MB"]
    return table(f"Cost per span, median of the last {_AVERAGED} blocks of {BLOCK:,} traces, 1 KB", head, rows)


def report(traces: int, data: Path | None = None, seconds: float = 1e9, late_window: float = 30.0) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder = data or Path(scratch)
        return shown(asyncio.run(run(folder, traces, seconds, late_window)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--for", type=float, default=1e9, dest="seconds")
    parser.add_argument("--late-window", type=float, default=30.0)
    asked = parser.parse_args()
    if asked.data is not None:
        asked.data.mkdir(parents=True, exist_ok=True)
    print(report(asked.traces, asked.data, asked.seconds, asked.late_window))


if __name__ == "__main__":
    main()
