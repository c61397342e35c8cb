"""Measures an application's memory while its collector is down, under load.

    python tests/lab/bench/processor_memory.py [--minutes 10] [--rate 500]

Prints memory every minute, and whether every span is accounted for.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from pandaeval_otel import PandaEvalSpanProcessor

_BATCH = 10


class Books:
    """Summing telemetry."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.gauges: dict[str, Callable[[], int]] = {}

    def count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        self.counts[signal, outcome, reason] += number

    def watch(self, what: str, read: Callable[[], int]) -> None:
        self.gauges[what] = read


def resident_mib() -> float:
    """Return this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=500)
    given = parser.parse_args()
    books = Books()
    provider = TracerProvider(shutdown_on_exit=False, resource=Resource.create({"service.name": "bench"}))
    provider.add_span_processor(PandaEvalSpanProcessor("127.0.0.1:1", telemetry=books))
    tracer = provider.get_tracer("bench")
    began, made, last_report, peak = time.monotonic(), 0, 0.0, 0.0
    print(f"   0 s: {resident_mib():6.1f} MiB")
    cpu = time.process_time()
    while (now := time.monotonic() - began) < given.minutes * 60:
        for _ in range(_BATCH):
            made += 1
            content = f"{made:08d}" * 688  # 5.5 KB that no other span shares
            with tracer.start_as_current_span("agent") as span:
                span.set_attributes({f"gen_ai.attribute.{n}": f"value {n}" for n in range(18)})
                span.set_attribute("gen_ai.input.messages", content)
                span.set_attribute("gen_ai.output.messages", content[::-1])
        peak = max(peak, resident_mib())
        if now - last_report >= 60:
            last_report = now
            gauges = {what: read() for what, read in books.gauges.items()}
            print(f"{now:4.0f} s: {resident_mib():6.1f} MiB, peak {peak:.1f}, {made} spans, {gauges}", flush=True)
        time.sleep(max(0.0, began + made / given.rate - time.monotonic()))
    cpu = time.process_time() - cpu
    provider.shutdown()
    settled = sum(n for (signal, outcome, _), n in books.counts.items() if signal == "spans" and outcome != "ended")
    print(
        f"peak {peak:.1f} MiB; {made} spans, {settled} accounted for; {1e6 * cpu / made:.0f} µs of CPU a span, all in"
    )
    print({"/".join(key): n for key, n in books.counts.items()})


if __name__ == "__main__":
    main()
