"""What each dialect costs per span, over the captures.

    python tests/bench/dialect_cost.py [--root DIR] [--repeat N]

Prints, for spans that a dialect reads, the median and the 95th percentile of one ``read`` in microseconds, for all of
them and for those of 15 to 25 attributes; and the same for spans that it looks at and leaves to others.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_REPO), str(_REPO / "collector")]

from pandaeval_otel.dialects import Dialect  # noqa: E402
from pandaeval_otel.normal.spans import candidates, dialects  # noqa: E402
from pandaeval_otel.raw import RawLog, RawSpan  # noqa: E402
from tests.golden.conformance_capture import read  # noqa: E402

_OWN = _REPO / "tests" / "golden" / "captures"
_SHARED = _REPO.parent / "shared" / "captures"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, action="append", default=[])
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args(arguments)
    spans = _spans([root for root in options.root or [_OWN, _SHARED] if root.is_dir()])
    print(f"{len(spans)} spans; microseconds per read: median / p95 (spans)")
    print(f"{'dialect':<16}{'all that it reads':>28}{'of 15-25 attributes':>28}{'left to others':>28}")
    for dialect in dialects():
        offered = [pair for pair in spans if dialect in candidates(*pair)]
        taken = [pair for pair in offered if dialect.read(*pair) is not None]
        left = [pair for pair in offered if dialect.read(*pair) is None]
        middle = [pair for pair in taken if 15 <= len(pair[0].attributes) <= 25]
        columns = [_timed(dialect, group, options.repeat) for group in (taken, middle, left)]
        print(f"{dialect.name:<16}" + "".join(f"{column:>28}" for column in columns))


def _spans(roots: Sequence[Path]) -> list[tuple[RawSpan, tuple[RawLog, ...]]]:
    found = []
    for root in roots:
        for path in sorted(root.glob("*/*.otlp.jsonl")):
            for recorded in read(path):
                by_span: dict[str, list[RawLog]] = {}
                for log in recorded.evidence.logs:
                    by_span.setdefault(log.span_id, []).append(log)
                found += [(span, tuple(by_span.get(span.span_id, ()))) for span in recorded.evidence.spans]
    return found


def _timed(dialect: Dialect, pairs: Sequence[tuple[RawSpan, tuple[RawLog, ...]]], repeat: int) -> str:
    if not pairs:
        return "-"
    costs = []
    for span, logs in pairs[:2000]:
        began = time.perf_counter_ns()
        for _ in range(repeat):
            dialect.read(span, logs)
        costs.append((time.perf_counter_ns() - began) / repeat / 1000)
    high = statistics.quantiles(costs, n=20)[-1] if len(costs) > 1 else costs[0]
    return f"{statistics.median(costs):.1f} / {high:.1f} ({len(pairs)})"


if __name__ == "__main__":
    main()
