"""Is a run whose steps are traces of their own running away?

The trace of such a run's last step holds the whole of it, and is where its loops are reported. A run that never ends
has no such trace: it is reported once, at the step at which it has wasted so many calls that nobody would wait longer.
"""

from __future__ import annotations

from dataclasses import replace

from pandaeval_collector.analysis.rules.tool_loop import ToolLoop, tool_loop
from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.normal.speech import tool_requests

RUNAWAY = 8
"""Wasted calls."""


def running_away(step: Trace) -> ToolLoop | None:
    """Finds what was wasted up to a step (:attr:`pandaeval_otel.model.Trace.is_step`), if it is the first by which that
    is too much; else ``None``. The step's own calls have no results yet and do not count."""
    answered = tuple(call for call in step.tool_calls if call.has_result)
    if len(answered) <= RUNAWAY:
        return None
    found = tool_loop(replace(step, tool_calls=answered))
    if not found.looping or found.wasted_calls < RUNAWAY:
        return None
    earlier = answered[: -_newest(step) or None]
    known = tool_loop(replace(step, tool_calls=earlier))
    return None if known.looping and known.wasted_calls >= RUNAWAY else found


def _newest(step: Trace) -> int:
    """How many calls the step before this one asked for: those of the last message of the history that asks."""
    calls = [span for span in step.spans if span.kind is Kind.LLM and span.input]
    messages = calls[-1].input or () if calls else ()
    return next((len(asked) for message in reversed(messages) if (asked := tool_requests([message]))), 1)
