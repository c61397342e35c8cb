"""What we understood of a trace, before any score: the first thing to look at when a score is puzzling."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.model import Span, Trace

_OF_CALL = ("id", "name", "arguments", "result", "error", "span_id", "agent")


def describe(trace: Trace) -> dict[str, Any]:
    """Returns the JSON object of a trace for programs. ``None`` (null) means "not captured"."""
    return {
        "trace_id": trace.trace_id,
        "session_id": trace.session_id,
        "user_id": trace.user_id,
        "root_span_id": trace.root_span_id,
        "agent": trace.agent,
        "agents": list(trace.agents),
        "service": trace.service,
        "status": trace.status,
        "complete": trace.complete,
        "input": trace.input,
        "output": trace.output,
        "turns": [{"user": turn.user, "assistant": turn.assistant} for turn in trace.turns],
        "tool_calls": [{name: getattr(call, name) for name in _OF_CALL} for call in trace.tool_calls],
        "tools": [
            {name: getattr(tool, name) for name in ("name", "description", "parameters")} for tool in trace.tools
        ],
        "reasoning": list(trace.reasoning),
        "llm_calls": trace.llm_calls,
        "models": list(trace.models),
        "tokens": {"input": trace.usage.input, "output": trace.usage.output},
        "dialects": list(trace.dialects),
        "spans": len(trace.spans),
        "dropped_attributes": trace.dropped_attributes,
        "notes": list(trace.notes),
    }


def in_order(trace: Trace) -> list[tuple[int, Span, bool]]:
    """Returns (depth, span, looped) of all spans, parents before children and siblings by start; depth 0 is the
    outermost. Spans in a loop of parents come last, with ``looped`` true."""
    children: dict[str, list[int]] = {}
    ids = {span.span_id: index for index, span in enumerate(trace.spans)}
    for index, span in enumerate(trace.spans):
        parent = span.parent_id if span.parent_id in ids and span.parent_id != span.span_id else ""
        children.setdefault(parent, []).append(index)
    ordered: list[tuple[int, Span, bool]] = []
    seen: set[int] = set()
    stack = [(index, 0) for index in reversed(children.get("", []))]
    while stack:
        index, depth = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        span = trace.spans[index]
        ordered.append((depth, span, False))
        stack.extend((child, depth + 1) for child in reversed(children.get(span.span_id, [])))
    ordered.extend((0, trace.spans[index], True) for index in ids.values() if index not in seen)
    return ordered
