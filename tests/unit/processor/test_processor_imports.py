"""Modules that an application loads with the span processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys

_PROGRAM = """
import json, sys
from pandaeval_otel import PandaEvalSpanProcessor
print(json.dumps(sorted(sys.modules)))
"""

_SENDING = """
import json, sys
from opentelemetry.sdk._logs import LoggerProvider
from pandaeval_otel import PandaEvalLogProcessor, PandaEvalSpanProcessor
from support.processors import Recording, emit, processor, provider

telemetry = Recording()
tracing = provider(processor("127.0.0.1:1", telemetry))
logging = LoggerProvider(shutdown_on_exit=False)
logging.add_log_record_processor(PandaEvalLogProcessor("127.0.0.1:1", telemetry=telemetry))
before = set(sys.modules)
with tracing.get_tracer("t").start_as_current_span("invoke_agent a") as span:
    span.set_attribute("gen_ai.operation.name", "invoke_agent")
    emit(logging, span, {"said": "this"})
assert not tracing.force_flush(2000), "nobody listens"
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_span_processor_loads_no_unused_modules() -> None:
    loaded = json.loads(subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True).stdout)
    unused = (
        "opentelemetry.sdk._logs",
        "opentelemetry.exporter.otlp.proto.common._log_encoder",
        "pandaeval_otel.dialects",
        "pandaeval_otel.processor.results",
    )
    assert [name for name in loaded if name.startswith(unused)] == []


def test_sending_imports_no_module() -> None:
    """If a fork interrupts an import on the sending thread, the child can never import that module."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run([sys.executable, "-c", _SENDING], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
