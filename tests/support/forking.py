"""An application that forks while it traces: ``python forking.py ENDPOINT``. Prints one JSON object per process."""

from __future__ import annotations

import json
import os
import sys

from opentelemetry.sdk.trace import TracerProvider
from support.agents import run_agent
from support.processors import Recording, processor, provider


def main() -> None:
    telemetry = Recording()
    tracing = provider(processor(sys.argv[1], telemetry))
    traces = [run_agent(tracing.get_tracer("t"), seed) for seed in range(3)]
    assert tracing.force_flush()
    children = []
    with tracing.get_tracer("t").start_as_current_span("open across forks"):
        for number in range(3):
            child = os.fork()
            if child == 0:
                telemetry.counts.clear()
                report(tracing, telemetry, [apart(tracing, 10 * number + seed) for seed in range(5)])
                os._exit(0)
            children.append(child)
            traces.append(apart(tracing, 100 + number))
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    report(tracing, telemetry, traces)


def apart(tracing: TracerProvider, seed: int) -> str:
    """A run in a trace of its own."""
    import contextvars

    return contextvars.Context().run(run_agent, tracing.get_tracer("t"), seed)


def report(tracing: TracerProvider, telemetry: Recording, traces: list[str]) -> None:
    tracing.shutdown()
    said = {"pid": os.getpid(), "traces": traces, "balance": telemetry.balance()}
    said |= {outcome: telemetry.of("spans", outcome) for outcome in ("acknowledged", "dropped", "rejected")}
    os.write(1, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main()
