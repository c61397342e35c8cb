"""What lists show of an agent's trace: the row by which people find it again."""

from __future__ import annotations

from typing import Any

import orjson

from pandaeval_collector.store import ListedRow
from pandaeval_collector.untrusted.excerpt import excerpt
from pandaeval_collector.untrusted.plain_error import plain_error
from pandaeval_otel.model import Trace

_EXCERPT, _NAME = 160, 80


def shown_facts(trace: Trace) -> dict[str, Any]:
    """What lists show of a trace, JSON-ready; every text is short and safe to show. ``at``: start, Unix milliseconds;
    ``us``: duration in microseconds; ``in``, ``out``: the beginnings of input and answer."""
    facts = {
        "id": trace.trace_id,
        "session": trace.session_id,
        "agent": excerpt(trace.agent, _NAME),
        "service": excerpt(trace.service, _NAME),
        "user": excerpt(trace.user_id, _NAME),
        "at": trace.start_ns // 1_000_000,
        "us": max(0, trace.end_ns - trace.start_ns) // 1000,
        "error": excerpt(trace.error and plain_error(trace.error), _EXCERPT),
        "in": excerpt(trace.input, _EXCERPT),
        "out": excerpt(trace.output, _EXCERPT),
        "spans": len(trace.spans),
        "llm": trace.llm_calls,
        "tools": len(trace.tool_calls),
        "tokens": [trace.usage.input, trace.usage.output],
    }
    if not trace.complete:
        facts["incomplete"] = True
    return {key: held for key, held in facts.items() if held is not None}


def listed(trace: Trace) -> ListedRow:
    """The row of a trace."""
    facts = shown_facts(trace)
    return ListedRow(
        trace_id=bytes.fromhex(trace.trace_id),
        at_ms=facts["at"],
        agent=facts.get("agent", ""),
        service=facts.get("service", ""),
        environment=excerpt(trace.environment, _NAME) or "",
        user=facts.get("user", ""),
        broken="error" in facts,
        facts=orjson.dumps(_storable(facts)),
    )


def _storable(facts: dict[str, Any]) -> dict[str, Any]:
    """Sums of numbers from outside may no longer fit into 64 bits."""
    return {**facts, "tokens": [min(each, (1 << 53) - 1) for each in facts["tokens"]]}
