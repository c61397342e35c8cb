"""Compares the facts read from two runs of a script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_otel.model import Trace

Facts = Mapping[str, tuple[str, ...]]
"""Fact to sorted values."""


def facts(traces: Iterable[Trace]) -> Facts:
    """Return a run's facts that scores use, without IDs and times."""
    kept = list(traces)
    turns = [turn for trace in kept for turn in trace.turns]
    calls = [call for trace in kept for call in trace.tool_calls]
    return {
        "input": _values(turn.user for turn in turns),
        "output": _values(turn.assistant for turn in turns),
        "calls": _values(call.name for call in calls),
        "arguments": _values((call.name, call.arguments) for call in calls if call.has_arguments),
        "results": _values((call.name, _parsed(call.result)) for call in calls if call.has_result),
        "tools": _values({tool.name for trace in kept for tool in trace.tools}),
        "model": _values({model for trace in kept for model in trace.models}),
        "tokens": _values((t.usage.input, t.usage.output) for t in kept if t.usage.input or t.usage.output),
        "session": _values({trace.session_id for trace in kept}),
        "agent": _values({trace.agent for trace in kept}),
        "errors": _values([trace.error for trace in kept] + [call.error for call in calls]),
        "reasoning": _values(thought for trace in kept for thought in trace.reasoning),
    }


def lost(pinned: Facts, newest: Facts, own: Iterable[str] = ()) -> list[str]:
    """Return facts missing in ``newest``, and its new errors. Facts in ``own`` compare by count."""
    counted = frozenset(own)
    return [
        fact
        for fact, before in pinned.items()
        if (before or fact == "errors") and _measure(fact, before, counted) != _measure(fact, newest[fact], counted)
    ]


def gained(pinned: Facts, newest: Facts) -> list[str]:
    """Return the facts of ``newest`` only."""
    return [fact for fact, before in pinned.items() if not before and newest[fact] and fact != "errors"]


def _measure(fact: str, values: tuple[str, ...], counted: frozenset[str]) -> object:
    return len(values) if fact in counted else values


def _values(items: Iterable[Any]) -> tuple[str, ...]:
    kept = (item for item in items if item is not None and item != "")
    return tuple(sorted(json.dumps(item, ensure_ascii=False, sort_keys=True, default=str) for item in kept))


def _parsed(result: Any) -> Any:
    """Parse a result sent as JSON text."""
    if not isinstance(result, str):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result
