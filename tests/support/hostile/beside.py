"""The normal traffic beside an attack, and the collector's resources."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.senders import GrpcSender, HttpSender, SpanSender, SubmitSender

_SAMPLE_S = 0.02
_FAMILY = 25
"""Samples between updates of the list of children."""


@dataclass(slots=True)
class Seen:
    """Latencies, acknowledged traces by time, attempts by outcome, and page times."""

    latencies_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    scrape_s: list[float] = field(default_factory=list)
    traces: dict[bytes, float] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


class NormalTraffic:
    """Sends small traces over three receivers while the context is open. ``authority``: CA certificate."""

    def __init__(
        self, collector: CollectorProcess, seed: int, pause_s: float = 0.1, authority: Path | None = None
    ) -> None:
        self.seen = Seen()
        self._collector, self._pause_s = collector, pause_s
        self._composer, self._lock, self._stopping = Composer(seed), threading.Lock(), threading.Event()
        doors: tuple[SpanSender, ...] = (
            GrpcSender(collector.grpc, authority),
            HttpSender(collector.http, authority=authority),
            SubmitSender(collector.grpc, authority),
        )
        self._threads = [threading.Thread(target=self._run, args=(door,)) for door in doors]
        seen = (("/healthz", 0.25, lambda: self.seen.health_s), ("/metrics", 2.0, lambda: self.seen.scrape_s))
        self._threads += [threading.Thread(target=self._look, args=each) for each in seen]

    def __enter__(self) -> NormalTraffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def take(self) -> Seen:
        """Return the observations since the last call."""
        with self._lock:
            seen, self.seen = self.seen, Seen()
        return seen

    def _run(self, door: SpanSender) -> None:
        with contextlib.closing(door):
            while not self._stopping.wait(self._pause_s):
                with self._lock:
                    trace = self._composer.trace()
                self._deliver(door, trace)

    def _deliver(self, door: SpanSender, trace: MadeTrace) -> None:
        began = time.monotonic()
        while not self._stopping.is_set():
            answer = door.send(trace.request())
            with self._lock:
                seen = self.seen
                if answer.refused:
                    seen.refused.append(answer.refused)
                    return
                seen.answers["acknowledged" if answer.acknowledged else f"tried again: {answer.message[:80]}"] += 1
                if answer.acknowledged:
                    seen.latencies_s.append(time.monotonic() - began)
                    seen.traces[trace.trace_id] = time.time()
                    return
            self._stopping.wait(0.1)

    def _look(self, path: str, pause_s: float, times: Callable[[], list[float]]) -> None:
        while not self._stopping.wait(pause_s):
            began = time.monotonic()
            with contextlib.suppress(OSError):
                address = f"http://127.0.0.1:{self._collector.health_port}{path}"
                with urllib.request.urlopen(address, timeout=60) as response:
                    while response.read(1 << 16):
                        pass
            with self._lock:
                times().append(time.monotonic() - began)


class Memory:
    """Peak RAM of a process and its ``children`` inside the block, in bytes."""

    def __init__(self, pid: int) -> None:
        self.peak = self.children = 0
        self._pid, self._stopping = pid, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Memory:
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # resets the peak that the kernel records
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.peak = max(self.peak, _status(self._pid, "VmHWM"))

    def _run(self) -> None:
        children: list[int] = []
        for number in itertools.count():
            if number % _FAMILY == 0:
                children = _children(self._pid)
            beside = sum(_status(each, "VmRSS") for each in children)
            self.children = max(self.children, beside)
            self.peak = max(self.peak, beside + _status(self._pid, "VmRSS"))
            if self._stopping.wait(_SAMPLE_S):
                return


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):  # a thread that has just ended
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def _status(pid: int, what: str) -> int:
    """Return a field of the process status; 0 after its end."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) * 1024
    return 0
