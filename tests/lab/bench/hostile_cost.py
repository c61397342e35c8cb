"""Measures CPU microseconds per span of model-free metrics on expensive traces.

python tests/lab/bench/hostile_cost.py [--sizes 40,400,2000] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from unittest import mock

from _table import table

sys.path.insert(0, str(Path(__file__).parents[2]))

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.scoring.evaluator import Evaluator
from support.hostile_traces import HOSTILE


def cost(evaluator: Evaluator, name: str, size: int) -> list[object]:
    """Return a row: total cost and most expensive metric."""
    trace = HOSTILE[name](size)
    texts = evaluator.embed([trace])
    steps: list[tuple[str, float]] = []
    with mock.patch.object(LIMIT, "step", lambda name: steps.append((name, time.process_time()))):
        before = time.process_time()
        evaluator.trace(trace, texts)
        evaluator.turns(trace, False)
        whole = time.process_time() - before
    by_metric: dict[str, float] = defaultdict(float)
    for (name_of_step, began), (_, ended) in pairwise([*steps, ("", before + whole)]):
        by_metric[name_of_step] += ended - began
    spans = len(trace.spans)
    dearest, seconds = max(by_metric.items(), key=lambda item: item[1])
    return [name, spans, whole / spans * 1e6, whole * 1e3, dearest, seconds / spans * 1e6]


def report(sizes: list[int], names: list[str]) -> str:
    evaluator = Evaluator(load("embedded"))
    cost(evaluator, "distinct", 3)  # warms up imports and caches
    rows = [cost(evaluator, name, size) for name in names or HOSTILE for size in sizes]
    head = ["trace", "spans", "µs a span", "ms a trace", "dearest metric", "its µs a span"]
    return table("Metrics without a model on hostile traces", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="40,400")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    print(report([int(each) for each in asked.sizes.split(",")], asked.names))


if __name__ == "__main__":
    main()
