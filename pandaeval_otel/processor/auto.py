"""Adds our processors to the providers that ``opentelemetry-instrument`` configures, without a line of code.

There is no entry point for span processors, so this runs as ``opentelemetry_post_instrument``, after the SDK and all
instrumentations were set up. It does nothing unless PANDAEVAL_ENDPOINT is set: an application that adds the processor
itself must not get a second one because this package is installed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider

from pandaeval_otel.processor.settings import enabled

_log = logging.getLogger(__name__)
_ENDPOINT = "localhost:4317"
_EVERY_S = 600.0
_SIGNALS = ("TRACES", "METRICS", "LOGS")


def instrument() -> None:
    """Adds the processors; ``opentelemetry-instrument`` calls it once. Never raises: an application must start
    anyway."""
    if not os.environ.get("PANDAEVAL_ENDPOINT", "").strip() or not enabled():
        return
    try:
        # Not at the top: without an endpoint neither gRPC nor the SDK may be loaded.
        from pandaeval_otel.processor.processors import PandaEvalLogProcessor, PandaEvalSpanProcessor

        tracers = trace.get_tracer_provider()
        add_span_processor = getattr(tracers, "add_span_processor", None)
        if add_span_processor is None:
            kind = type(tracers).__name__
            raise TypeError(
                f"{kind} takes no span processors. Install opentelemetry-distro, which configures the SDK, or set "
                "OTEL_PYTHON_CONFIGURATOR"
            )
        explain_default_exporter()
        add_span_processor(PandaEvalSpanProcessor())
        add_log_record_processor = getattr(get_logger_provider(), "add_log_record_processor", None)
        if add_log_record_processor is not None:
            add_log_record_processor(PandaEvalLogProcessor())
    except Exception as error:  # noqa: BLE001 - whatever is wrong here, the application is not to blame
        _log.warning("PandaEval is not active: %s", error)


def explain_default_exporter(environ: Mapping[str, str] = os.environ) -> None:
    """Replaces the failure messages of OpenTelemetry's own exporter by one every ten minutes, unless an OTLP endpoint
    is set: ``opentelemetry-distro`` exports to ``localhost:4317`` by default, whether or not anything listens there."""
    variables = ["OTEL_EXPORTER_OTLP_ENDPOINT", *(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT" for signal in _SIGNALS)]
    if not any(environ.get(name, "").strip() for name in variables):
        logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter").addFilter(_Explained())


class _Explained(logging.Filter):
    """Replaces records about the default endpoint and passes all others. On any thread: two may both log the
    message."""

    def __init__(self) -> None:
        super().__init__()
        self._told_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or _ENDPOINT not in record.getMessage():
            return True
        if time.monotonic() - self._told_at < _EVERY_S:
            return False
        self._told_at = time.monotonic()
        record.msg, record.args = (
            "OpenTelemetry's own exporter cannot send to %s, its default, as no OTEL_EXPORTER_OTLP_ENDPOINT is set. "
            "Traces for PandaEval go to PANDAEVAL_ENDPOINT all the same. Without another backend, set "
            "OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none",
            (_ENDPOINT,),
        )
        return True
