"""Overloads a memory-limited collector tenfold, then waits for recovery."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.collector import CollectorProcess
from support.hostile.beside import Memory
from support.limited import limited
from support.made_traces import Composer, MadeTrace

_NAME = b"OVERLOAD"
"""The first half of each trace ID in the template request."""
_TRACES, _SPANS, _SENDERS, _MEASURE_S, _REST_S = 20, 12, 240, 15.0, 3600.0
"""Senders; a refused sender waits a second, so many are needed."""
_LATE = "30s"
"""Retention, short so that decided traces do not fill the disk."""
_OVER = 1.25
"""Allowed excess of the store over its budget, for accepted work."""
_TRIES_S = 10.0
"""An SDK's timeout for a request."""
_ID = re.compile(rb'"trace_id":"([0-9a-f]{16})')


@dataclass(slots=True)
class Overload:
    """``sustained``: spans per second without overload. ``offered``: with retries. ``given_up``: failed requests.

    ``lag_s``: longest wait. ``recovered_s``: until no wait. ``store_mib``: peak size.
    """

    sustained: float = 0.0
    offered: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    given_up: int = 0
    p99_s: float = 0.0
    lag_s: float = 0.0
    recovered_s: float = 0.0
    store_mib: int = 0
    peak_mib: int = 0
    limit: str = ""
    problems: list[str] = field(default_factory=list)


def run(folder: Path, seconds: float, times: float, limit_mib: int, disk_mib: int) -> Overload:
    found = Overload()
    settings = {"PANDAEVAL_STORE__MAX_BYTES": f"{disk_mib}MiB", "PANDAEVAL_LATE__WINDOW": _LATE}
    with CollectorProcess(folder, settings, fresh=True, own_children=True) as collector:
        collector.launch()
        assert collector.process is not None
        pid = collector.process.pid
        with limited(pid, limit_mib << 20, f"pandaeval-{pid}") as found.limit:
            collector.until(collector.ready, "ready", 600.0)
            load = _Load(collector)
            found.sustained = _sustained(collector, load)
            with Memory(pid) as memory:
                load.times.clear()
                began = time.monotonic()
                load.run(seconds, found.sustained * times)
                found.offered = round(load.offered / (time.monotonic() - began))
                found.lag_s, ended = round(load.lag_s, 1), time.monotonic()
                found.store_mib = int(load.store_bytes) >> 20
                collector.until(lambda: _is_done(collector), "without lag", _REST_S)
                found.recovered_s = round(time.monotonic() - ended, 1)
            found.peak_mib = memory.peak >> 20
            _last_word(found, collector, load, limit_mib, disk_mib)
    return found


class _Load:
    """Senders of requests with different trace IDs."""

    def __init__(self, collector: CollectorProcess) -> None:
        self._collector, self._template, self._number = collector, _request(), 0
        self._lock = threading.Lock()
        self.offered, self.given_up, self.lag_s, self.store_bytes = 0, 0, 0.0, 0.0
        self.answers: Counter[str] = Counter()
        self.acknowledged: set[bytes] = set()
        self.times: list[float] = []

    def one(self, connection: http.client.HTTPConnection) -> None:
        """Send a request until accepted, for ten seconds."""
        with self._lock:
            self._number += 1
            name = b"OV" + self._number.to_bytes(6, "big")
        body, deadline = self._template.replace(_NAME, name), time.monotonic() + _TRIES_S
        while time.monotonic() < deadline:
            began = time.monotonic()
            try:
                connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
                response = connection.getresponse()
                response.read()
                answer, wait = str(response.status), float(response.getheader("Retry-After", "0"))
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                answer, wait = type(error).__name__, 0.1
            with self._lock:
                self.answers[answer] += 1
                self.offered += _TRACES * _SPANS
                if answer == "200":
                    self.acknowledged.add(name)
                    self.times.append(time.monotonic() - began)
                    return
            time.sleep(wait)
        with self._lock:
            self.given_up += 1

    def run(self, seconds: float, rate: float) -> None:
        """Send at this total rate."""
        until, self.offered = time.monotonic() + seconds, 0
        pause = _SENDERS * _TRACES * _SPANS / rate
        senders = [threading.Thread(target=self._send, args=(until, pause)) for _ in range(_SENDERS)]
        for sender in senders:
            sender.start()
        while any(sender.is_alive() for sender in senders):
            self.lag_s = max(self.lag_s, self._collector.gauge("lag_seconds"))
            self.store_bytes = max(self.store_bytes, self._collector.gauge("store_size_bytes"))
            time.sleep(2.0)

    def _send(self, until: float, pause: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._collector.http_port, timeout=_TRIES_S)
        due = time.monotonic()
        while time.monotonic() < until:
            self.one(connection)
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
        connection.close()


def _request() -> bytes:
    request = ExportTraceServiceRequest()
    for trace in _traces():
        request.MergeFrom(trace.request())
    return request.SerializeToString()


def _traces() -> Iterator[MadeTrace]:
    composer, made = Composer(int.from_bytes(_NAME, "big"), sessions=1), 0
    while made < _TRACES:
        trace = composer.trace(_SPANS)
        if trace.session is None:
            made += 1
            yield trace


def _sustained(collector: CollectorProcess, load: _Load) -> float:
    """Return spans per second until the last decision."""
    connection, began, requests = http.client.HTTPConnection("127.0.0.1", collector.http_port), time.monotonic(), 0
    while time.monotonic() - began < _MEASURE_S:
        load.one(connection)
        requests += 1
        while collector.gauge("traces_open") > 20 * _TRACES:
            time.sleep(0.05)
    collector.until(lambda: _is_done(collector), "without lag", _REST_S)
    return round(requests * _TRACES * _SPANS / (time.monotonic() - began))


def _is_done(collector: CollectorProcess) -> bool:
    return not collector.gauge("traces_open") and not collector.gauge("lag_seconds")


def _last_word(found: Overload, collector: CollectorProcess, load: _Load, limit_mib: int, disk_mib: int) -> None:
    found.answers, found.given_up = dict(sorted(load.answers.items())), load.given_up
    found.acknowledged = len(load.acknowledged) * _TRACES
    found.p99_s = round(sorted(load.times)[int(len(load.times) * 0.99)], 3) if load.times else 0.0
    if residual := collector.gauge("accounting_residual"):
        found.problems.append(f"{residual:.0f} items have no fate")
    decided = sum(n for (name, outcome, _), n in collector.counts().items() if (name, outcome) == ("traces", "decided"))
    if decided < found.acknowledged:
        found.problems.append(f"{found.acknowledged - decided} acknowledged traces were not decided")
    if (code := collector.stop()) != 0:
        found.problems.append(f"SIGTERM ended it with {code}")
    with collector.results_file.open("rb") as lines:
        scored = {bytes.fromhex(match[1].decode()) for line in lines if (match := _ID.search(line))}
    if lost := load.acknowledged - scored:
        found.problems.append(f"{len(lost)} acknowledged requests have no result")
    if found.peak_mib > limit_mib:
        found.problems.append(f"{found.peak_mib} MiB in RAM")
    if found.store_mib > disk_mib * _OVER:
        found.problems.append(f"the store had {found.store_mib} MiB of {disk_mib}")
    if wrong := {each for each in load.answers if each not in ("200", "503", "429", "TimeoutError")}:
        found.problems.append(f"answers that ask nobody to come back: {sorted(wrong)}")
