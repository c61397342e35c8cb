"""Measures memory of open traces.

Sends traces of 12 spans in batches or span by span. "index" is the assembler's own memory.

    python tests/lab/bench/memory.py [--traces 10000]
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from pathlib import Path

from _load import Load, send
from _server import collector
from _table import table
from accept import OPEN
from synthetic import SIZES, SPANS_PER_TRACE, Stream

from pandaeval_otel.assembly import TraceAssembler
from pandaeval_otel.wire.splitting import split_traces


def resident(traces: int, size: str) -> list[object]:
    """Return memory before, after, peak and per trace."""
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder), OPEN) as server:
        server.wait_ready()
        empty = server.memory()
        warm = send(server.address, Load(12_000, SIZES[size], first=10**9))
        before = server.memory()
        send(server.address, Load(traces * SPANS_PER_TRACE - warm.spans, SIZES[size]))
        after, most = server.memory(), server.memory("VmHWM")
    grown = (after - before) / (traces - warm.spans / SPANS_PER_TRACE)
    return [size, traces, empty / 1e6, before / 1e6, after / 1e6, most / 1e6, grown]


def index(traces: int, singly: bool) -> float:
    """Return bytes per open trace in the assembler."""
    assembler = TraceAssembler()
    stream = Stream(10, SIZES["1 KB"], distinct=2)
    chunk = 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(traces // 10):
        for fragment in split_traces(next(stream)).fragments:
            groups = [[item] for item in fragment.items] if singly else [fragment.items]
            for items in groups:
                chunk += 1
                assembler.add(fragment.trace_id, items, chunk, 1000 * len(items), 0.0)
    del fragment, groups, items
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return grown / len(assembler)


def report(traces: int) -> str:
    head = [
        "size",
        "open traces",
        "ready MB",
        "1,000 open MB",
        "all open MB",
        "peak MB",
        "bytes per open trace",
    ]
    return table("Resident memory of a collector with open traces", head, [resident(traces, size) for size in SIZES])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=10_000)
    print(report(parser.parse_args().traces))


if __name__ == "__main__":
    main()
