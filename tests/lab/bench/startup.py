"""Measures start-up until ``/readyz``, and ``pandaeval evaluate`` for one session.

Covers an empty store and open traces, with bytecode present.

    python tests/lab/bench/startup.py [--runs 7] [--data DIR]

``--data``: a folder with a collector's ``data`` directory instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _load import Load, send
from _page import ROOT
from _server import BYTECODE, collector
from _table import table
from accept import OPEN
from synthetic import SIZES, SPANS_PER_TRACE


def once(folder: Path) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    with collector(folder, OPEN) as server:
        return server.wait_ready(pause_s=0.005), server.cpu_s()


def of_folder(folder: Path, runs: int) -> str:
    size = sum(file.stat().st_size for file in (folder / "data").iterdir())
    return _shown(runs, {f"{size / 1e9:.1f} GB": [once(folder) for _ in range(runs)]})


def report(runs: int, open_traces: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        empty = [once(Path(folder)) for _ in range(runs + 1)][1:]
        with collector(Path(folder), OPEN) as server:
            server.wait_ready()
            send(server.address, Load(open_traces * SPANS_PER_TRACE, SIZES["1 KB"]))
        resumed = [once(Path(folder)) for _ in range(max(1, runs // 2))]
    stores = {"empty store": empty, f"{open_traces:,} open traces of 12 spans": resumed}
    return _shown(runs, stores) + "\n" + evaluate(runs)


def evaluate(runs: int) -> str:
    file = next((ROOT / "tests/golden/captures").glob("*/good.otlp.jsonl"))
    found = [_evaluated(file) for _ in range(runs + 1)][1:]
    row = [median(wall for wall, _ in found), max(wall for wall, _ in found), median(cpu for _, cpu in found)]
    return table(
        f"`pandaeval evaluate` on a file with one session: seconds, {runs} runs", ["median", "worst", "CPU s"], [row]
    )


def _evaluated(file: Path) -> tuple[float, float]:
    program = "from pandaeval_collector.cli import main; main()"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, "evaluate", str(file)],
        env={**os.environ, **BYTECODE, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.monotonic() - begun, cpu


def _shown(runs: int, measured: dict[str, list[tuple[float, float]]]) -> str:
    rows = [
        [what, median(wall for wall, _ in found), max(wall for wall, _ in found), median(cpu for _, cpu in found)]
        for what, found in measured.items()
    ]
    return table(
        f"Seconds from the start of a collector until it is ready, {runs} runs",
        ["store", "median", "worst", "CPU s"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    print(of_folder(asked.data, asked.runs) if asked.data else report(asked.runs, asked.traces))


if __name__ == "__main__":
    main()
