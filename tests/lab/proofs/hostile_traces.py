"""Measures the cost of random hostile traces in this process.

    python tests/lab/proofs/hostile_traces.py --traces 10000 --seed 1

Scores each trace with all model-free metrics. Requires: CPU time within :data:`MOST_US_A_BYTE` per byte plus
:data:`SPARE_S`, no exception, and results. Adds a ledger line. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from pandaeval_collector.analysis.embedding import load  # noqa: E402
from pandaeval_collector.pipeline.line.stored_traces import rebuilt  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator, trace_unit  # noqa: E402
from support.hostile.random_traces import HostileTraces  # noqa: E402
from support.ledger import note  # noqa: E402

MOST_US_A_BYTE, SPARE_S = 20.0, 1.5
"""A trace of a megabyte may take 20 s, close to ``line.timeout``."""


def main() -> int:
    options = _options()
    evaluator, source = Evaluator(load("embedded")), HostileTraces(options.seed)
    worst: list[tuple[float, float, int, str]] = []
    seconds: list[float] = []
    problems: list[str] = []
    total = 0
    for number in range(options.traces):
        kind, request = source.request()
        data = request.SerializeToString()
        began = time.process_time()
        try:
            if not _scored(evaluator, data):
                problems.append(f"trace {number} ({kind}) has no result")
        except Exception as error:  # any exception would quarantine the trace
            problems.append(f"trace {number} ({kind}) raises {type(error).__name__}: {error}"[:500])
        took = time.process_time() - began
        seconds.append(took)
        total += len(data)
        over = max(0.0, took - SPARE_S) / len(data) * 1e6
        heapq.heappush(worst, (over, took, len(data), kind[:300]))
        if len(worst) > 10:
            heapq.heappop(worst)
        if over > MOST_US_A_BYTE:
            problems.append(f"trace {number} ({kind[:300]}): {took:.1f} s for {len(data)} bytes")
        if number % 500 == 499:
            print(f"{number + 1}: {sum(seconds):.0f} s of CPU, {len(problems)} problems", file=sys.stderr, flush=True)
    found: dict[str, Any] = {
        "seed": options.seed,
        "traces": options.traces,
        "bytes": total,
        "cpu_s": round(sum(seconds), 1),
        "us_a_byte": round(sum(seconds) / total * 1e6, 3),
        "median_s": round(statistics.median(seconds), 4),
        "most_s": round(max(seconds), 2),
        "dearest": [f"{took:.2f} s for {size} bytes: {kind}" for _, took, size, kind in sorted(worst)[::-1][:3]],
        "problems": problems[:50],
    }
    print(json.dumps(note(options.ledger, "hostile_traces", found), indent=1))
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("hostile-traces-ledger.jsonl"))
    return parser.parse_args()


def _scored(evaluator: Evaluator, data: bytes) -> int:
    trace = rebuilt([(False, data)]).trace
    assert trace is not None
    texts = evaluator.embed([trace])
    return len(evaluator.by_itself(trace, texts, trace_unit(trace), False))


if __name__ == "__main__":
    sys.exit(main())
