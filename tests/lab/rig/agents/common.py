"""Job and telemetry of the agent scripts.

The job is JSON in ``RIG_JOB``, see ``play.py``. OpenTelemetry's environment variables configure the rest.
"""

import json
import os
from collections.abc import Callable
from contextlib import contextmanager

from desks import DESKS
from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

JOB = json.loads(os.environ["RIG_JOB"])
DESK = DESKS[JOB["desk"]]
MODEL = "gpt-4o-mini"


@contextmanager
def telemetry():
    """Provide global providers over OTLP/HTTP, flushed at the end."""
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    trace.set_tracer_provider(tracers)
    _logs.set_logger_provider(loggers)
    try:
        yield tracers
    finally:
        tracers.shutdown()
        loggers.shutdown()


def told(tool: Callable[..., str], arguments: dict) -> str:
    """Return a tool's result, or its error as text."""
    try:
        return tool(**arguments)
    except Exception as error:  # an agent reports every tool failure to the model
        return f"Error: {type(error).__name__}: {error}"
