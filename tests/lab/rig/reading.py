"""What was read of a run, fact by fact, and what of it another run of the same script no longer says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_otel.model import Trace

Facts = Mapping[str, tuple[str, ...]]
"""Fact to the values read of it, sorted: calls that a model asked for together end in any order."""


def facts(traces: Iterable[Trace]) -> Facts:
    """The facts that scores rest on, of all traces of one run. Ids and times are left out: they differ by run."""
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
    """The facts that ``pinned`` has and ``newest`` has not, or not as they were, and errors that ``newest`` adds.
    Of the facts in ``own`` a framework makes up the value anew in each run: how many there are is what counts."""
    counted = frozenset(own)
    return [
        fact
        for fact, before in pinned.items()
        if (before or fact == "errors") and _measure(fact, before, counted) != _measure(fact, newest[fact], counted)
    ]


def gained(pinned: Facts, newest: Facts) -> list[str]:
    """The facts that only ``newest`` has."""
    return [fact for fact, before in pinned.items() if not before and newest[fact] and fact != "errors"]


def _measure(fact: str, values: tuple[str, ...], counted: frozenset[str]) -> object:
    return len(values) if fact in counted else values


def _values(items: Iterable[Any]) -> tuple[str, ...]:
    kept = (item for item in items if item is not None and item != "")
    return tuple(sorted(json.dumps(item, ensure_ascii=False, sort_keys=True, default=str) for item in kept))


def _parsed(result: Any) -> Any:
    """A result that a framework sends as text is the same as one that it sends as JSON."""
    if not isinstance(result, str):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result
