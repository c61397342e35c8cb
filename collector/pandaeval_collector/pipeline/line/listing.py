"""What lists show of an agent's trace: the row by which people find it again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import orjson

from pandaeval_collector.base.untrusted.foreign import plain_error
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.store import ListedRow
from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import RawSpan

_EXCERPT, _NAME = 160, 80
_COSTS = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
"""Attributes of a model call with its cost in US dollars: Pydantic AI's, OpenLIT's, OpenInference's."""
_MOST_USD = 1e6
_VALUES, _VALUE = 8, 200
"""Most values of an attribute that are kept of a trace, and most characters of each."""


def shown_facts(trace: Trace) -> dict[str, Any]:
    """Returns what lists show of a trace, JSON-ready; every text is short and safe to show. ``at``: start, Unix
    milliseconds; ``us``: duration in microseconds; ``in``, ``out``: the beginnings of input and answer."""
    facts = {
        "id": trace.trace_id,
        "session": trace.session_id,
        "agent": excerpt(trace.agent, _NAME),
        "service": excerpt(trace.service, _NAME),
        "user": excerpt(trace.user_id, _NAME),
        "at": trace.start_ns // 1_000_000,
        "us": max(0, trace.end_ns - trace.start_ns) // 1000,
        "error": excerpt(trace.failure and plain_error(trace.failure), _EXCERPT),
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


def pairs_of(spans: Iterable[RawSpan], keys: Collection[str]) -> tuple[str, ...]:
    """Returns the attributes with these keys, of spans or their resources, as pairs ``key=value``: of each key the
    first :data:`_VALUES` values. Lists and objects are left out."""
    found: dict[str, dict[str, None]] = {}
    for span in spans:
        for held in (span.attributes, span.resource.attributes):
            for key in keys:
                values, value = found.setdefault(key, {}), held.get(key)
                if len(values) < _VALUES and isinstance(value, str | bool | int | float) and value != "":
                    text = (str(value).lower() if isinstance(value, bool) else str(value))[:_VALUE]
                    values[text if text.isascii() else text.encode(errors="replace").decode()] = None
    return tuple(f"{key}={value}" for key, values in found.items() for value in values)


def cost_of(spans: Iterable[RawSpan]) -> float | None:
    """Adds up what the model calls cost in US dollars, as their instrumentation tells it; ``None`` where none does."""
    costs = []
    for span in spans:
        for key in _COSTS:
            if key in span.attributes:
                cost = span.attributes[key]
                if isinstance(cost, int | float) and 0 <= cost < _MOST_USD:
                    costs.append(float(cost))
                break
    return sum(costs) if costs else None


def listed(trace: Trace, attributes: tuple[str, ...] = (), usd: float | None = None) -> ListedRow:
    """Makes the row of a trace. ``attributes``: from :func:`pairs_of`; ``usd``: from :func:`cost_of`."""
    facts = shown_facts(trace)
    if usd is not None:
        facts["usd"] = usd
    return ListedRow(
        trace_id=bytes.fromhex(trace.trace_id),
        at_ms=facts["at"],
        agent=facts.get("agent", ""),
        service=facts.get("service", ""),
        environment=excerpt(trace.environment, _NAME) or "",
        user=facts.get("user", ""),
        broken="error" in facts,
        # Sums of numbers from outside may no longer fit into 64 bits.
        facts=orjson.dumps({**facts, "tokens": [min(each, (1 << 53) - 1) for each in facts["tokens"]]}),
        attributes=attributes,
    )
