"""Runs an agent script with the lines of docs/start/python.md only.

    DOCUMENTED_LINES=... python documented.py AGENT_SCRIPT

Runs in the framework's environment with ``pandaeval-otel``.
"""

import os
import runpy
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "agents"))

import common
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider


@contextmanager
def documented():
    """Replace ``common.telemetry`` with providers and the documented lines."""
    provider, logs = TracerProvider(), LoggerProvider()
    trace.set_tracer_provider(provider)
    _logs.set_logger_provider(logs)
    known = {"provider": provider, "logs": logs}
    for lines in os.environ["DOCUMENTED_LINES"].split("\f"):
        exec(lines, known)
    _nothing_else()
    try:
        yield provider
    finally:
        provider.shutdown()
        logs.shutdown()


def _nothing_else():
    with suppress(ImportError):
        from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

        BaseInstrumentor.instrument = lambda self, **options: None
    if "pydantic_ai" in sys.modules:
        sys.modules["pydantic_ai"].Agent.instrument_all = staticmethod(lambda *options: None)


common.telemetry = documented
runpy.run_path(sys.argv[1], run_name="__main__")
