"""A loaded collector with a large store, with and without readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx
from _load import Load, send
from _server import Server, collector, free_ports
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE

_TOO_SLOW = 503
"""The answer to a timed-out query."""
Questions = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Beside:
    """Results. ``took``: milliseconds by query; ``alone``, ``read``: (p50, p99) acknowledgement times per round."""

    took: dict[str, list[float]] = field(default_factory=dict)
    alone: list[tuple[float, float]] = field(default_factory=list)
    read: list[tuple[float, float]] = field(default_factory=list)

    def report(self, rate: float, readers: int) -> str:
        rows = [(name, f"{median(each):.0f}", f"{at(each, 0.95):.0f}", len(each)) for name, each in self.took.items()]
        every = [one for each in self.took.values() for one in each]
        rows.append(("all of them", f"{median(every):.0f}", f"{at(every, 0.95):.0f}", len(every)))
        head = f"Lists beside {rate:,.0f} spans/s, {readers} readers"
        acks = [
            (who, f"{median(p50 for p50, _ in each):.1f}", f"{median(p99 for _, p99 in each):.1f}", _all(each))
            for who, each in (("traffic alone", self.alone), ("traffic and readers", self.read))
        ]
        ratio = median(p99 for _, p99 in self.read) / median(p99 for _, p99 in self.alone)
        return "\n".join(
            (
                table(head, ("asked", "median ms", "p95 ms", "times"), rows),
                table("Acknowledgements, medians of rounds", ("", "p50 ms", "p99 ms", "p99 of each round"), acks),
                f"\np99 with readers: {ratio:.2f} times that without",
            )
        )


def _all(rounds: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{p99:.1f}" for _, p99 in rounds)


def at(values: Sequence[float], quantile: float) -> float:
    """Return a quantile."""
    return sorted(values)[min(len(values) - 1, int(quantile * len(values)))]


def measure(folder: Path, questions: Questions, rate: float, rounds: int, seconds: float, readers: int) -> Beside:
    """Alternate rounds without and with readers. ``folder``: contains ``data``."""
    found, sent = Beside(), 1 << 20
    (port,) = free_ports(1)
    http = f"127.0.0.1:{port}"
    with collector(folder, {"SERVER__HTTP": http, "CLOSE__QUIET": "1s"}, core=None) as server:
        server.wait_ready()
        send(server.address, _load(rate, 5.0, sent), core=None)
        _asked(http, questions, 1, threading.Event(), {}, once=True)
        for number in range(2 * rounds):
            sent += int(rate * seconds)
            with_readers = (number + number // 2) % 2 == 1
            took = _round(server, http, questions, _load(rate, seconds, sent), readers if with_readers else 0, found)
            (found.read if with_readers else found.alone).append(took)
    return found


def _load(rate: float, seconds: float, first: int) -> Load:
    return Load(int(rate * seconds), SIZES["1 KB"], traces=1, connections=4, rate=rate, first=first // SPANS_PER_TRACE)


def _round(
    server: Server, http: str, questions: Questions, load: Load, readers: int, found: Beside
) -> tuple[float, float]:
    over = threading.Event()
    threads = [
        threading.Thread(target=_asked, args=(http, questions, number + 1, over, found.took))
        for number in range(readers)
    ]
    for thread in threads:
        thread.start()
    sent = send(server.address, load, core=None)
    over.set()
    for thread in threads:
        thread.join()
    time.sleep(3.0)  # the collector decides the remaining traces of the round
    return sent.p50_ms, sent.p99_ms


def _asked(
    http: str,
    questions: Questions,
    number: int,
    over: threading.Event,
    took: dict[str, list[float]],
    once: bool = False,
) -> None:
    start = number * len(questions) // 3
    with httpx.Client(base_url=f"http://{http}/api/v1", timeout=60.0) as client:
        while not over.is_set():
            for name, address in (*questions[start:], *questions[:start]):
                begun = time.perf_counter()
                answer = client.get(address)
                took.setdefault(name, []).append(1000 * (time.perf_counter() - begun))
                assert answer.status_code in (200, _TOO_SLOW), (address, answer.text)
                if over.wait(0.2):
                    break
            if once:
                return
