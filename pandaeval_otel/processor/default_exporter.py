"""The exporter that ``opentelemetry-distro`` sets up where nothing else is said: to ``localhost:4317``, whether or not
anything listens there. Its failures are told once in a while, with what to do about them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

_ENDPOINT = "localhost:4317"
_LOGGER = "opentelemetry.exporter.otlp.proto.grpc.exporter"
_EVERY_S = 600.0
_SIGNALS = ("TRACES", "METRICS", "LOGS")


def explain_default_exporter(environ: Mapping[str, str] = os.environ) -> None:
    """Where no endpoint of OTLP is set, replaces what the exporter says of failures by a sentence every ten minutes."""
    variables = ["OTEL_EXPORTER_OTLP_ENDPOINT", *(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT" for signal in _SIGNALS)]
    if not any(environ.get(name, "").strip() for name in variables):
        logging.getLogger(_LOGGER).addFilter(_Explained())


class _Explained(logging.Filter):
    """Passes on what speaks of anything else. Any thread: two of them may both be told."""

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
