"""What further processes bring to ``pandaeval evaluate``: the same file scored with one and two of them.

    python tests/lab/bench/evaluate.py [--traces 5000] [--rounds 3] [--workers 1,2]

Rounds take turns. Seconds by the clock and of all processors together, and whether results are the same to the byte but
for times.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import orjson
from _server import BYTECODE
from _table import table
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from synthetic import SIZES, SPANS_PER_TRACE, request

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.senders import to_json

_MOVES = ("time", "duration_ms")


def written(folder: Path, traces: int) -> Path:
    """A file of OTLP/JSON lines, a trace each."""
    path = folder / "traces.jsonl"
    with path.open("w") as file:
        for number in range(traces):
            made = ExportTraceServiceRequest.FromString(request(1, number, SIZES["1 KB"]))
            file.write(json.dumps(to_json(made)) + "\n")
    return path


def once(path: Path, workers: int) -> tuple[float, float, str]:
    """Seconds by the clock, of the processors, and what the results come to."""
    output = path.with_name("results.jsonl")
    program = "from pandaeval_collector.cli import main; main()"
    command = [sys.executable, "-c", program, "evaluate", str(path), "--workers", str(workers), "--format", "json"]
    environ = {**os.environ, **BYTECODE, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="1,2")
    asked = parser.parse_args()
    counts = [int(each) for each in asked.workers.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), asked.traces)
        found = [[once(path, count) for count in counts] for _ in range(asked.rounds)]
    rows = []
    for count, taken in zip(counts, zip(*found, strict=True), strict=True):
        seconds = median(each[0] for each in taken)
        rows.append((count, seconds, median(each[1] for each in taken), asked.traces * SPANS_PER_TRACE / seconds))
    head = ("--workers", "seconds", "CPU seconds", "spans/s")
    print(table(f"{asked.traces:,} traces of {SPANS_PER_TRACE} spans of 1 KB, medians of {asked.rounds}", head, rows))
    print("\nthe same results:", "yes" if len({each[2] for row in found for each in row}) == 1 else "NO")


if __name__ == "__main__":
    main()
