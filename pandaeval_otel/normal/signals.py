"""Detects recorded exceptions that are no errors: a call that waits for a person, and an attempt that was repeated."""

from __future__ import annotations

import re

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects import Reading
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import STATUS_ERROR, RawSpan

_WAITS = re.compile(
    r"(?:\w+[.:])*(?:(?:Graph|Node|Genkit|Tool|Workflow)Interrupt(?:Error|Exception)?|ApprovalRequired|CallDeferred|"
    r"InterruptException)\b|\W*Tool execution was interrupted\W*\Z"
)
"""Control flow that frameworks raise to wait for a person or another program, and Strands' result of such a call."""
_FINISH, _HAS_NO_ARGUMENTS = "finish", "is not in the tool's args"
"""DSPy ends a run by a tool without arguments, also if the model gave it some."""
_AFTER_NS = 100_000_000
"""A model that ends this much later than its exception tried again."""


def is_harmless_error(raw: RawSpan, reading: Reading, kind: Kind) -> bool:
    """Return whether the error of a span is only control flow, or a failed attempt before its answer."""
    raised = [event for event in raw.events if event.name == semconv.EXCEPTION]
    words = (reading.error, *[event.attributes.get("exception.type") for event in raised])
    if any(_WAITS.match(str(each or "")) for each in words):
        return True
    if raw.name.startswith(_FINISH) and _HAS_NO_ARGUMENTS in (reading.error or ""):
        return True
    if kind is not Kind.LLM or not reading.output or raw.status_code == STATUS_ERROR:
        return False
    over = raw.end_ns - _AFTER_NS
    return bool(raised) and semconv.ERROR_TYPE not in raw.attributes and all(e.time_ns < over for e in raised)
