"""From the close of a trace to its emitted results, at a steady rate of spans.

A trace closes ``close.quiet`` after its last span was acknowledged; emitted means that all its inline results stand in
the file of the JSON lines exporter, after its fsync. The file is looked at every 2 ms.

    python tests/bench/latency.py [--rate 5000] [--seconds 30]
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import threading
import time
from pathlib import Path

from _load import Load, send
from _server import collector
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE

QUIET_S = 2.0
_POLL_S = 0.002
_TRACE = re.compile(rb'"level":"trace".*?"trace_id":"([0-9a-f]{32})"')


class _Tail:
    """When the last result of each trace was seen in a file, on a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.seen: dict[str, float] = {}
        self._path, self._stop = path, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._path.exists() and not self._stop.is_set():
            time.sleep(_POLL_S)
        with self._path.open("rb") as file:
            rest = b""
            while not self._stop.is_set():
                new = file.read()
                if not new:
                    time.sleep(_POLL_S)
                    continue
                now = time.monotonic()
                lines, _, rest = (rest + new).rpartition(b"\n")
                self.seen.update((each.decode(), now) for each in _TRACE.findall(lines))


def measure(size: str, rate: float, seconds: float) -> tuple[list[float], int]:
    """Seconds from close to results, sorted, and how many traces were sent. The first second warms up."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results, acks = folder / "results.jsonl", folder / "acks.json"
        settings = {"CLOSE__QUIET": f"{QUIET_S}s", "EXPORTERS__JSONL__PATH": str(results)}
        with collector(folder, settings) as server:
            server.wait_ready()
            tail = _Tail(results)
            load = Load(int(rate * seconds), SIZES[size], traces=1, connections=4, rate=rate, acks=str(acks))
            sent = send(server.address, load)
            deadline = time.monotonic() + 120
            while server.decided() < sent.spans // SPANS_PER_TRACE and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(1.0)
            tail.stop()
        acked: dict[str, float] = json.loads(acks.read_text())
        from_second = min(acked.values()) + 1.0
        waits = [tail.seen[id_] - at - QUIET_S for id_, at in acked.items() if at > from_second and id_ in tail.seen]
        return sorted(waits), sum(1 for at in acked.values() if at > from_second)


def report(rate: float, seconds: float) -> str:
    rows: list[list[object]] = []
    for size in SIZES:
        waits, traces = measure(size, rate, seconds)
        p50, p99 = waits[len(waits) // 2] * 1e3, waits[int(len(waits) * 0.99)] * 1e3
        rows.append([f"{size}, {rate:,.0f} spans/s, 12 a request", p50, p99, waits[-1] * 1e3, f"{len(waits)}/{traces}"])
    return table("From close to results, ms", ["load", "p50", "p99", "max", "traces with results"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--seconds", type=float, default=30)
    asked = parser.parse_args()
    print(report(asked.rate, asked.seconds))


if __name__ == "__main__":
    main()
