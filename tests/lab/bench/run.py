"""Runs all benchmarks of collector and span processor.

python tests/lab/bench/run.py [--quick] [--page]

``--page`` writes the tables into docs/internals/performance.md at the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import accept
import latency
import line
import memory
import processor
import startup
from _page import measured, stamp, write

MARK = "stages: python tests/lab/bench/run.py"


def benches(quick: bool) -> list[Callable[[], str]]:
    rounds, spans = (1, 60_000) if quick else (5, 240_000)
    return [
        lambda: line.report(24_000 if quick else 120_000),
        lambda: startup.report(3 if quick else 7, 1_000 if quick else 10_000),
        lambda: memory.report(2_000 if quick else 10_000),
        lambda: accept.accept(accept.CASES, rounds, spans),
        lambda: accept.sustained(5 if quick else 15),
        lambda: accept.whole(accept.LINE_CASES, rounds, spans // 2),
        lambda: accept.scaling((1, 2, 3), accept.LINE_CASES[0], rounds, spans // 2),
        lambda: latency.report(5_000, 10 if quick else 30),
        lambda: processor.report(31 if quick else 121, 200),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small and once: minutes instead of an hour")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/internals/performance.md")
    asked = parser.parse_args()
    command = "tests/lab/bench/run.py --quick" if asked.quick else "tests/lab/bench/run.py"
    sections = [measured(stamp(), command)]
    print(sections[0], flush=True)
    for number, bench in enumerate(benches(asked.quick), 1):
        print(f"{number} of {len(benches(asked.quick))}", file=sys.stderr, flush=True)
        sections.append(bench())
        print(sections[-1], flush=True)
    if asked.page:
        write(MARK, "\n".join(sections))


if __name__ == "__main__":
    main()
