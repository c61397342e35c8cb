"""An application that forks while it traces: ``python forking.py ENDPOINT [STOP]``.

Prints a JSON object per process. With STOP the processes run until that file exists.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

from support.agents import run_agent
from support.processors import Recording, processor, provider, witness


def main() -> None:
    """Fork with an open span. With STOP the buffer is small."""
    endpoint, stop = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None
    telemetry = Recording()
    ours = processor(endpoint, telemetry, buffer_bytes=32 << 20 if stop is None else 15_000, shutdown_timeout=20.0)
    taken, tracing = witness(ours), provider(ours)
    traces = [run_agent(tracing.get_tracer("t"), seed) for seed in range(3)]
    assert tracing.force_flush()
    children = []
    if stop is None:
        across = tracing.get_tracer("t").start_span("open across forks")
    for number in range(3):
        child = os.fork()
        if child == 0:
            telemetry.counts.clear()
            taken.clear()
            report(tracing, telemetry, taken, play(tracing, 10 * number, 5, stop))
            os._exit(0)
        children.append(child)
        traces.append(apart(tracing, 100 + number))
    traces += play(tracing, 200, 0, stop)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    if stop is None:
        across.end()
    report(tracing, telemetry, taken, traces)


def play(tracing: TracerProvider, seed: int, times: int, stop: Path | None) -> list[str]:
    """Run ``count`` agents, or until the time ends."""
    traces: list[str] = []
    while len(traces) < times or (stop is not None and not stop.exists()):
        traces.append(apart(tracing, seed + len(traces)))
        time.sleep(0.02 if stop is not None else 0)
    return traces


def apart(tracing: TracerProvider, seed: int) -> str:
    """Run an agent in its own trace."""
    import contextvars

    return contextvars.Context().run(run_agent, tracing.get_tracer("t"), seed)


def report(tracing: TracerProvider, telemetry: Recording, taken: set[str], traces: list[str]) -> None:
    tracing.shutdown()
    summary = {"pid": os.getpid(), "traces": traces, "taken": sorted(taken), "balance": telemetry.balance()}
    summary["dropped_traces"] = telemetry.of("traces", "dropped")
    summary |= {outcome: telemetry.of("spans", outcome) for outcome in ("acknowledged", "dropped", "rejected")}
    os.write(1, json.dumps(summary).encode() + b"\n")


if __name__ == "__main__":
    main()
