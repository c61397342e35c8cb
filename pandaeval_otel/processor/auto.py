"""Adds our processors to the providers of ``opentelemetry-instrument``, if PANDAEVAL_ENDPOINT is set."""

from __future__ import annotations

import logging
import os

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider

from pandaeval_otel.processor.settings import enabled

_log = logging.getLogger(__name__)


def instrument() -> None:
    """Add the processors. Never raises."""
    if not os.environ.get("PANDAEVAL_ENDPOINT", "").strip() or not enabled():
        return
    try:
        # Not at the top of the file: without an endpoint, neither gRPC nor the SDK is imported.
        from pandaeval_otel.processor.log_events import PandaEvalLogProcessor
        from pandaeval_otel.processor.processors import PandaEvalSpanProcessor

        tracers = trace.get_tracer_provider()
        add_span_processor = getattr(tracers, "add_span_processor", None)
        if add_span_processor is None:
            kind = type(tracers).__name__
            raise TypeError(
                f"{kind} takes no span processors. Install opentelemetry-distro, which configures the SDK, or set "
                "OTEL_PYTHON_CONFIGURATOR"
            )
        add_span_processor(PandaEvalSpanProcessor())
        add_log_record_processor = getattr(get_logger_provider(), "add_log_record_processor", None)
        if add_log_record_processor is not None:
            add_log_record_processor(PandaEvalLogProcessor())
    except Exception as error:  # noqa: BLE001 - an error here must not affect the application
        _log.warning("PandaEval is not active: %s", error)
