"""The units of results: traces, turns and unreadable traces."""

from __future__ import annotations

import hashlib
import time

from pandaeval_collector.base.result import Unit
from pandaeval_collector.base.untrusted.trace_attributes import stated
from pandaeval_collector.judge.turns import TurnView
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.base import semconv
from pandaeval_otel.model import Trace


def trace_unit(trace: Trace, evidence: str | None = None) -> Unit:
    """Make the unit of a trace. Its evaluated span is the outermost agent's."""
    case, trial = stated(trace, semconv.PANDAEVAL_CASE_ID, semconv.PANDAEVAL_TRIAL)
    roots = [span for span in trace.spans if span.span_id == trace.root_span_id]
    return Unit(
        level="trace",
        id=trace.trace_id,
        trace_id=trace.trace_id,
        span_id=trace.root_span_id,
        session_id=trace.session_id,
        agent=trace.agent,
        service=trace.service,
        environment=trace.environment,
        evidence=evidence or trace.digest,
        revision=trace.revision,
        trigger=str(trace.trigger),
        late_spans=trace.late_spans,
        response_id=trace.response_id,
        end_ns=roots[0].end_ns if roots else trace.end_ns,
        sampled=trace.sampled,
        case=case,
        trial=trial,
    )


def turn_unit(view: TurnView) -> Unit:
    """Make the unit of a turn. Its evaluated span is the answering span."""
    unit = trace_unit(view.trace)
    span_id = view.span_id
    unit.level, unit.id, unit.span_id = "turn", f"{unit.trace_id}:{span_id}", span_id
    unit.end_ns = next((span.end_ns for span in view.trace.spans if span.span_id == span_id), unit.end_ns)
    return unit


def unread(due: DueTrace) -> Unit:
    """Make the unit of an unreadable trace, with the received span ids as evidence."""
    known = hashlib.blake2b(b"".join(sorted(due.known)), digest_size=16).hexdigest()
    return Unit(
        level="trace",
        id=due.trace_id.hex(),
        trace_id=due.trace_id.hex(),
        span_id="",
        agent="unknown_service",
        service="unknown_service",
        evidence=known,
        revision=due.revision,
        trigger=due.trigger.value,
        late_spans=due.late_spans,
        end_ns=time.time_ns(),
    )
