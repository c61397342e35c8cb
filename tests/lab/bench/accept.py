"""Measures acknowledged spans per second, and end-to-end throughput.

The collector and the load use one core each. Tables show medians. "per CPU second" divides by the server's CPU time.

    python tests/lab/bench/accept.py [--quick] [--rounds 5] [--spans 120000]
    python tests/lab/bench/accept.py --only scaling --workers 1 2 3
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from _disk import DiskProbe
from _load import Load, Sent, send
from _server import Server, collector
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE

OPEN = {"CLOSE__QUIET": "1h", "CLOSE__IDLE": "1h", "CLOSE__MAX_AGE": "2h"}
QUIET_S = 0.2
"""Time until a trace closes, short because it is measured."""
RATES = (20_000.0, 40_000.0, 60_000.0, 80_000.0)
"""Spans a second."""
NOWHERE = {"EXPORTERS__OTLP__ENDPOINT": "127.0.0.1:9"}
"""A sink that is down: results stay in the outbox."""


@dataclass(frozen=True, slots=True)
class Case:
    """Span size, spans per request, callers and connections."""

    size: str
    traces: int
    callers: int
    connections: int

    def load(self, spans: int, first: int = 0) -> Load:
        return Load(spans, SIZES[self.size], self.traces, self.callers, self.connections, first=first)

    @property
    def name(self) -> str:
        spans = self.traces * SPANS_PER_TRACE
        return f"{self.size}, {spans} a request, {self.callers} callers, {self.connections} connections"


CASES = (
    Case("1 KB", 10, 8, 1),
    Case("1 KB", 10, 16, 8),
    Case("1 KB", 40, 8, 4),
    Case("1 KB", 1, 16, 1),
    Case("1 KB", 1, 32, 8),
    Case("5 KB", 10, 8, 1),
    Case("5 KB", 10, 16, 8),
)
LINE_CASES = (Case("1 KB", 10, 8, 4), Case("5 KB", 10, 8, 4))


@dataclass(frozen=True, slots=True)
class Round:
    """Sent load and server CPU seconds."""

    sent: Sent
    cpu_s: float

    @property
    def per_cpu_s(self) -> float:
        return self.sent.spans / self.cpu_s


def measure(load: Load) -> Round:
    """Run a round on a fresh server."""
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder), OPEN) as server:
        server.wait_ready()
        send(server.address, Load(load.traces * SPANS_PER_TRACE * 10, load.span_bytes, load.traces, first=10**9))
        before = server.cpu_s()
        sent = send(server.address, load)
        return Round(sent, server.cpu_s() - before)


def accept(cases: tuple[Case, ...], rounds: int, spans: int) -> str:
    """Return the table of acknowledged spans."""
    rows: list[list[object]] = []
    for case in cases:
        wanted = spans // (5 if case.size == "5 KB" or case.traces == 1 else 1)
        found = [measure(case.load(wanted)) for _ in range(rounds)]
        rows.append(
            [
                case.name,
                median(each.sent.rate for each in found),
                median(each.sent.p50_ms for each in found),
                median(each.sent.p99_ms for each in found),
                median(each.per_cpu_s for each in found),
                f"{median(each.sent.cpu_s / each.sent.wall_s for each in found):.0%} busy",
            ]
        )
    head = ["load", "spans/s", "p50 ms", "p99 ms", "spans per CPU s", "sender"]
    return table(f"Acknowledged spans by load, median of {rounds} rounds", head, rows)


def whole(cases: tuple[Case, ...], rounds: int, spans: int, core: int | None = 0) -> str:
    """Measure from the first byte to the last committed decision."""
    rows: list[list[object]] = []
    for case in cases:
        wanted = spans // (2 if case.size == "5 KB" else 1)
        found = [_until_decided(case.load(wanted), core) for _ in range(rounds)]
        rates, per_cpu, sent = zip(*found, strict=True)
        rows.append([case.name, median(rates), median(per_cpu), median(each.p99_ms for each in sent)])
    where = "all cores, shared with the load" if core is None else "one core"
    return table(
        f"Receiving and scoring on {where}, median of {rounds} rounds",
        ["load", "spans/s", "spans per CPU s", "p99 ms of a request"],
        rows,
    )


def _until_decided(load: Load, core: int | None) -> tuple[float, float, Sent]:
    settings = {"CLOSE__QUIET": f"{QUIET_S}s", **NOWHERE}
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder), settings, core) as server:
        server.wait_ready()
        warm = Load(load.traces * SPANS_PER_TRACE * 10, load.span_bytes, load.traces, first=10**9)
        traces = send(server.address, warm).spans // SPANS_PER_TRACE
        _wait_decided(server, traces)
        before = server.cpu_s()
        sent = send(server.address, load)
        _wait_decided(server, traces + sent.spans // SPANS_PER_TRACE)
        wall, cpu = time.monotonic() - sent.begun, server.cpu_s() - before
        return sent.spans / wall, sent.spans / cpu, sent


@dataclass(frozen=True, slots=True)
class Worked:
    """CPU seconds and memory of collector, workers and load."""

    spans: int
    wall_s: float
    own_s: float
    workers_s: float
    load_s: float
    own_memory: int
    worker_memory: int


def scaling(numbers: tuple[int, ...], case: Case, rounds: int, spans: int) -> str:
    """Measure throughput by ``line.workers``, alternating."""
    found: dict[int, list[Worked]] = {number: [] for number in numbers}
    for _ in range(rounds):
        for number in numbers:
            found[number].append(_work(case.load(spans), number))
    rows = [_scaled(number, each, found[numbers[0]]) for number, each in found.items()]
    return table(
        f"Receiving and scoring by line.workers, on all cores, which the sender shares; {case.name}; "
        f"medians of {rounds} rounds",
        [
            "workers",
            "spans/s",
            f"x {numbers[0]} workers",
            "own CPU µs a span",
            "workers' CPU µs a span",
            "load's CPU µs a span",
            "cores busy",
            "own MB",
            "MB of a worker",
        ],
        rows,
    )


def _scaled(number: int, found: list[Worked], first: list[Worked]) -> list[object]:
    return [
        number,
        median(each.spans / each.wall_s for each in found),
        median(other.wall_s / each.wall_s for each, other in zip(found, first, strict=True)),
        median(1e6 * each.own_s / each.spans for each in found),
        median(1e6 * each.workers_s / each.spans for each in found),
        median(1e6 * each.load_s / each.spans for each in found),
        f"{median((each.own_s + each.workers_s + each.load_s) / each.wall_s for each in found):.2f}",
        median(each.own_memory / 1e6 for each in found),
        median(each.worker_memory / 1e6 for each in found),
    ]


def _work(load: Load, workers: int) -> Worked:
    settings = {"CLOSE__QUIET": "100ms", "LINE__WORKERS": str(workers), **NOWHERE}
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder), settings, None) as server:
        server.wait_ready()
        warm = Load(load.traces * SPANS_PER_TRACE * 30, load.span_bytes, load.traces, first=10**9)
        traces = send(server.address, warm).spans // SPANS_PER_TRACE
        _wait_decided(server, traces)
        own, together = server.own_cpu_s(), server.cpu_s()
        sent = send(server.address, load)
        _wait_decided(server, traces + sent.spans // SPANS_PER_TRACE)
        wall, own_s, all_s = time.monotonic() - sent.begun, server.own_cpu_s() - own, server.cpu_s() - together
        largest = max((server.memory("VmRSS", child) for child in server.children()), default=0)
        return Worked(sent.spans, wall, own_s, all_s - own_s, sent.cpu_s, server.memory(), largest)


def _wait_decided(server: Server, traces: int) -> None:
    while server.decided() < traces:
        time.sleep(0.1)


def sustained(seconds: int = 15, rates: Sequence[float] = RATES) -> str:
    """Measure request and disk latency at steady rates."""
    rows: list[list[object]] = []
    for rate in rates:
        load = Load(int(rate * seconds), SIZES["1 KB"], connections=4, rate=rate)
        with tempfile.TemporaryDirectory() as folder, collector(Path(folder), OPEN) as server:
            server.wait_ready()
            with DiskProbe(Path(folder)) as disk:
                sent = send(server.address, load)
        name = f"{rate:,.0f} spans/s for {seconds} s"
        rows.append([name, sent.rate, sent.p50_ms, sent.p99_ms, sent.refused, disk.ms(0.99), disk.ms(1.0)])
    head = ["load", "spans/s", "p50 ms", "p99 ms", "refused", "disk p99 ms", "disk worst ms"]
    return table("Answer times at a constant rate of spans, 1 KB a span, 120 spans a request", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spans", type=int, default=240_000)
    parser.add_argument("--only", choices=("accept", "whole", "sustained", "scaling"))
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[1, 2, 3], help="for scaling; compared with the first"
    )
    asked = parser.parse_args()
    rounds, spans = (1, 60_000) if asked.quick else (asked.rounds, asked.spans)
    if asked.only in (None, "accept"):
        print(accept(CASES, rounds, spans), flush=True)
    if asked.only in (None, "sustained"):
        print(sustained(5 if asked.quick else 15), flush=True)
    if asked.only in (None, "whole"):
        print(whole(LINE_CASES, rounds, spans // 2), flush=True)
        print(whole(LINE_CASES, rounds, spans // 2, core=None), flush=True)
    if asked.only in (None, "scaling"):
        print(scaling(tuple(asked.workers), LINE_CASES[0], rounds, spans // 2), flush=True)


if __name__ == "__main__":
    main()
