"""Modules that an application loads with the span processor."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json, sys
from pandaeval_otel import PandaEvalSpanProcessor
print(json.dumps(sorted(sys.modules)))
"""


def test_the_span_processor_loads_neither_the_logs_of_the_sdk_nor_the_results() -> None:
    loaded = json.loads(subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True).stdout)
    unused = (
        "opentelemetry.sdk._logs",
        "opentelemetry.exporter.otlp.proto.common._log_encoder",
        "pandaeval_otel.dialects",
        "pandaeval_otel.processor.results",
    )
    assert [name for name in loaded if name.startswith(unused)] == []
