"""Measures ``pandaeval evaluate`` on recorded runs, against another checkout.

    python tests/lab/bench/evaluate.py --sets DIR[,DIR] [--beside CHECKOUT] [--metric trace.response] [--page]

Prints spans, megabytes and CPU seconds beyond start-up, for one metric and all. The best round counts. A set is a
folder of OTLP/JSON lines (``traces*.jsonl``, also ``.xz``).
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
from _page import ROOT, measured, stamp, write
from _server import BYTECODE
from _table import table

_MOVES = ("time", "duration_ms")
MARK = "real runs: python tests/lab/bench/evaluate.py --sets"


def once(path: Path, *options: str, checkout: Path | None = None) -> tuple[float, float, str]:
    """Return wall seconds, CPU seconds and results. ``checkout``: source to run."""
    output = path.with_name("results.jsonl")
    program = "from pandaeval_collector.cli import main; main()"
    command = [sys.executable, "-c", program, "evaluate", str(path), "--format", "json", *options]
    sources = [] if checkout is None else [str(checkout), str(checkout / "collector")]
    environ = {**os.environ, **BYTECODE, "PYTHONPATH": os.pathsep.join([*sources, *filter(None, sys.path)])}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with output.open("wb") as out:
        subprocess.run(command, env=environ, stdout=out, stderr=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    digest = hashlib.sha256()
    for line in output.read_bytes().splitlines():
        digest.update(orjson.dumps({key: value for key, value in orjson.loads(line).items() if key not in _MOVES}))
    return seconds, taken, digest.hexdigest()[:12]


def of_sets(folders: Sequence[Path], beside: Path | None, rounds: int, metric: str | None) -> str:
    """Return the table of recorded runs."""
    checkouts = {"here": ROOT} if beside is None else {"before": beside, "here": ROOT}
    rows: list[list[object]] = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            path, first = Path(scratch, "traces.jsonl"), Path(scratch, "first.jsonl")
            path.write_bytes(b"".join(map(_lines, sorted(folder.glob("traces*.jsonl*")))))
            lines = path.read_bytes().splitlines(keepends=True)
            first.write_bytes(lines[0])
            spans = sum(line.count(b'"spanId"') - line.count(b'"links"') for line in lines)
            size = path.stat().st_size / 1e6
            for what, options in ((metric, ("--metrics", metric)), ("all", ())) if metric else (("all", ()),):
                least = {name: [float("inf"), float("inf")] for name in checkouts}
                results: dict[str, str] = {}
                for _ in range(rounds):
                    for name, checkout in checkouts.items():
                        start = once(first, *options, checkout=checkout)[1]
                        _, taken, results[name] = once(path, *options, checkout=checkout)
                        least[name] = [min(least[name][0], start), min(least[name][1], taken)]
                for name, (start, taken) in least.items():
                    cpu = taken - start
                    rows.append([folder.name, spans, size, what, name, start, cpu, spans / cpu, size / cpu])
                if len(set(results.values())) > 1:
                    rows[-1][4] = "here (other results)"
    head = ("set", "spans", "MB", "metrics", "checkout", "start, CPU s", "CPU s", "spans per CPU s", "MB per CPU s")
    return table(f"CPU time of `pandaeval evaluate` on recorded runs, minimum of {rounds} rounds", head, rows)


def _lines(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sets", required=True, type=lambda text: [Path(name) for name in text.split(",")])
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--metric", help="measure also with this metric alone")
    parser.add_argument("--page", action="store_true", help="write the table into docs/internals/performance.md")
    asked = parser.parse_args()
    stamped = stamp()
    shown = of_sets(asked.sets, asked.beside, asked.rounds, asked.metric)
    shown += "\n\n" + measured(stamped, "tests/lab/bench/evaluate.py --sets")
    print(shown)
    if asked.page:
        write(MARK, shown)


if __name__ == "__main__":
    main()
