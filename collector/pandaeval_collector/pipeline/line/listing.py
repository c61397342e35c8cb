"""The list row of an agent's trace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from pandaeval_collector.base.prices import usd_of
from pandaeval_collector.base.untrusted.foreign import plain_error
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.store import ListedRow
from pandaeval_otel.base.semconv import REQUEST_MODEL
from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.model.raw import RawSpan

_EXCERPT, _NAME = 160, 80
_COSTS = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
"""Attributes of a model call with its cost in US dollars: Pydantic AI's, OpenLIT's, OpenInference's."""
_MOST_USD = 1e6
_MODELS = 3
_UNKNOWN: Mapping[str, Any] = {}
_RUNS, _OTHERS = 20, 10
"""Maximum runs of a batch, and maximum results of other evaluators, in the list row of a trace."""
_VALUES, _VALUE = 8, 200
"""Maximum values of an attribute kept per trace, and characters per value."""


def shown_facts(trace: Trace) -> dict[str, Any]:
    """Return JSON-ready list fields with safe texts.

    ``at``: start in Unix milliseconds. ``us``: microseconds. ``runs``: of a batch. ``others``: other evaluators'
    results.
    """
    start_ns = trace.start_ns
    facts: dict[str, Any] = {
        "id": trace.trace_id,
        "session": trace.session_id,
        "agent": excerpt(trace.agent, _NAME),
        "service": excerpt(trace.service, _NAME),
        "user": excerpt(trace.user_id, _NAME),
        "at": start_ns // 1_000_000,
        "us": max(0, trace.end_ns - start_ns) // 1000,
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
    facts["runs"] = [
        {"in": excerpt(run.input, _EXCERPT), "out": excerpt(run.output, _EXCERPT)} for run in trace.runs if run.output
    ][:_RUNS] or None
    facts["others"] = [
        {"name": each.name, "source": excerpt(each.source, _NAME), "score": each.score, "label": each.label}
        for each in trace.evaluations[:_OTHERS]
    ] or None
    return {key: held for key, held in facts.items() if held is not None}


def pairs_of(spans: Iterable[RawSpan], keys: Collection[str], models: Iterable[str] = ()) -> tuple[str, ...]:
    """Return attributes with these keys as ``key=value``, at most :data:`_VALUES` per key, without lists and
    objects.

    ``models``: values of ``gen_ai.request.model`` if no span has this attribute, as with other conventions.
    """
    found: dict[str, dict[str, None]] = {}
    for span in spans:
        for held in (span.attributes, span.resource.attributes):
            for key in keys:
                values, value = found.setdefault(key, {}), held.get(key)
                if len(values) < _VALUES and isinstance(value, str | bool | int | float) and value != "":
                    values[_listed_text(value)] = None
    if found.get(REQUEST_MODEL) == {}:
        found[REQUEST_MODEL] = dict.fromkeys(map(_listed_text, [*models][:_VALUES]))
    return tuple(f"{key}={value}" for key, values in found.items() for value in values)


def _listed_text(value: str | bool | float) -> str:
    text = (str(value).lower() if isinstance(value, bool) else str(value))[:_VALUE]
    return text if text.isascii() else text.encode(errors="replace").decode()


def cost_of(spans: Iterable[RawSpan], trace: Trace) -> dict[str, Any]:
    """Return the cost of model calls. ``usd``: stated or by list price. ``unpriced``: models without a price."""
    stated = {span.span_id: cost for span in spans if (cost := _stated(span)) is not None}
    calls = [span for span in trace.spans if span.kind is Kind.LLM]
    costs, unpriced = [*stated.values()], dict[str, None]()
    if stated.keys() <= {span.span_id for span in calls}:  # else an agent's span states the total
        for span in calls:
            if span.span_id in stated or span.usage is None:
                continue
            usd = usd_of(span.usage, span.response_model, span.request_model)
            if usd is None:
                unpriced[excerpt(span.response_model or span.request_model, _NAME) or "unknown model"] = None
            else:
                costs.append(usd)
    known = {"usd": sum(costs)} if costs else {}
    return {**known, "unpriced": [*unpriced][:_MODELS]} if unpriced else known


def _stated(span: RawSpan) -> float | None:
    cost = next((span.attributes[key] for key in _COSTS if key in span.attributes), None)
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < _MOST_USD else None


def listed(trace: Trace, attributes: tuple[str, ...] = (), cost: Mapping[str, Any] = _UNKNOWN) -> ListedRow:
    facts = {**shown_facts(trace), **cost}
    return ListedRow(
        trace_id=bytes.fromhex(trace.trace_id),
        at_ms=facts["at"],
        agent=facts.get("agent", ""),
        service=facts.get("service", ""),
        environment=excerpt(trace.environment, _NAME) or "",
        user=facts.get("user", ""),
        broken="error" in facts,
        # Sums of senders' numbers may exceed 64 bits.
        facts=orjson.dumps({**facts, "tokens": [min(each, (1 << 53) - 1) for each in facts["tokens"]]}),
        attributes=attributes,
    )
