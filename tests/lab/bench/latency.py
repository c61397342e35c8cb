"""Measures the time from trace completion to emitted results, at a steady rate.

Emitted means that all inline results are in the JSON lines file after fsync. Also prints disk latency.

    python tests/lab/bench/latency.py [--rate 5000] [--seconds 30] [--workers 2 --all-cores]
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from _disk import DiskProbe
from _load import Load, send
from _server import SERVER_CORE, collector
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE

QUIET_S = 2.0
_POLL_S = 0.002
_TRACE = re.compile(rb'"level":"trace".*?"trace_id":"([0-9a-f]{32})"')


class _Tail:
    """Records on a thread when each trace's last result appears."""

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


@dataclass(frozen=True, slots=True)
class Measured:
    """``waits``: sorted seconds of ``traces``. ``disk``: disk times."""

    waits: list[float]
    traces: int
    disk: DiskProbe

    def ms(self, quantile: float) -> float:
        """Return a quantile in milliseconds."""
        return 1e3 * self.waits[min(len(self.waits) - 1, int(quantile * len(self.waits)))]


def measure(size: str, rate: float, seconds: float, workers: int = 1, core: int | None = SERVER_CORE) -> Measured:
    """Run once, after a second of warm-up."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results, acks = folder / "results.jsonl", folder / "acks.json"
        settings = {"CLOSE__QUIET": f"{QUIET_S}s", "EXPORTERS__JSONL__PATH": str(results)}
        settings["LINE__WORKERS"] = str(workers)
        disk = DiskProbe(folder)
        with collector(folder, settings, core) as server, disk:
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
        return Measured(sorted(waits), sum(1 for at in acked.values() if at > from_second), disk)


def report(rate: float, seconds: float, workers: int = 1, core: int | None = SERVER_CORE) -> str:
    rows: list[list[object]] = []
    for size in SIZES:
        found = measure(size, rate, seconds, workers, core)
        times = [found.ms(0.5), found.ms(0.99), found.ms(1.0)]
        with_results = f"{len(found.waits)}/{found.traces}"
        load = f"{size}, {rate:,.0f} spans/s, 12 a request"
        rows.append([load, *times, with_results, found.disk.ms(0.99), found.disk.ms(1.0)])
    where = "all cores, shared with the load" if core is None else "one core"
    head = ["load", "p50", "p99", "max", "traces with results", "disk p99", "disk worst"]
    return table(
        f"Time from the completion of a trace to its results, in milliseconds; {where}, line.workers {workers}",
        head,
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workers", type=int, default=1, help="line.workers")
    parser.add_argument("--all-cores", action="store_true")
    asked = parser.parse_args()
    print(report(asked.rate, asked.seconds, asked.workers, None if asked.all_cores else SERVER_CORE))


if __name__ == "__main__":
    main()
