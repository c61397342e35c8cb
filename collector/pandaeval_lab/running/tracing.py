"""The spans of a run: each turn is a trace that names its case, trial, session and goal, on its first span and as
baggage, so that spans of other processes carry them too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import _logs, baggage, context, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, Status, StatusCode

from pandaeval_lab.cases.trial import SIMULATED, SIMULATOR_FAILED
from pandaeval_lab.running.agent import RunContext
from pandaeval_otel import PandaEvalLogProcessor, PandaEvalSpanProcessor, using_case, using_session
from pandaeval_otel.base import semconv

Marks = Mapping[str, str | bool | tuple[str, ...]]
"""Attributes of the first span of a turn."""


class Tracing:
    """Sends spans to a collector at ``endpoint``. ``here``: the agent runs in this process, whose providers, also those
    that the agent's module has set, get our processors; made when that module is loaded."""

    def __init__(self, endpoint: str, here: bool) -> None:
        self._spans, provider = PandaEvalSpanProcessor(endpoint=endpoint), trace.get_tracer_provider()
        if not here or not isinstance(provider, TracerProvider):
            provider = TracerProvider()
            if here:
                trace.set_tracer_provider(provider)
        provider.add_span_processor(self._spans)
        if here:
            logs = _logs.get_logger_provider()
            if not isinstance(logs, LoggerProvider):
                logs = LoggerProvider()
                _logs.set_logger_provider(logs)
            logs.add_log_record_processor(PandaEvalLogProcessor(endpoint=endpoint))
        self._tracer = provider.get_tracer("pandaeval_lab")

    @contextmanager
    def turn(self, about: RunContext, marks: Marks) -> Iterator[Span]:
        """Opens the first span of a turn, current inside, which the caller ends. ``marks`` are its attributes."""
        carrying = context.get_current()
        for name in (semconv.PANDAEVAL_GOAL, SIMULATED):
            carrying = baggage.set_baggage(name, str(marks[name]), carrying) if name in marks else carrying
        token = context.attach(carrying)
        try:
            with (
                using_session(about.session, propagate=True),
                using_case(about.case, about.trial, propagate=True),
                trace.use_span(self._tracer.start_span(f"case {about.case}", attributes=dict(marks))) as span,
            ):
                yield span
        finally:
            context.detach(token)

    def flush(self, seconds: float) -> bool:
        """Returns whether the collector took all spans within so many seconds. Blocks."""
        return self._spans.force_flush(round(seconds * 1000))


def fail(span: Span, message: str, name: str, why: str) -> None:
    """Notes on the first span of a turn, as attribute ``name``, why there is no answer. The span becomes that of an
    agent, since one that failed early left none of its own."""
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": message}]}], ensure_ascii=False)
    known = {semconv.OPERATION: "invoke_agent", semconv.INPUT_MESSAGES: said, name: why}
    span.set_attributes(known)
    span.set_status(Status(StatusCode.ERROR, why))


def spoil(span: Span, why: str) -> None:
    """Makes a span the whole trace of an attempt whose user failed: that of an agent without contents or a fault."""
    span.set_attributes({semconv.OPERATION: "invoke_agent", SIMULATOR_FAILED: why})
    span.end()
