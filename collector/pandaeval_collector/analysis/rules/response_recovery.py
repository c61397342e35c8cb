"""Tool calls that failed and that nothing made up for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from pandaeval_collector.analysis.rules._canonical import canonical_arguments
from pandaeval_collector.analysis.rules._failures import failed, is_absence
from pandaeval_collector.analysis.rules._verbs import Nature, computes, nature, only_looks
from pandaeval_otel.model import Kind, ToolCall, Trace

# Remembers what was found of the trace that several metrics ask about, one after another.
_Found = TypeVar("_Found")


def once_a_trace(find: Callable[[Trace], _Found]) -> Callable[[Trace], _Found]:
    """Caches the result of ``find`` for the latest trace, as several metrics ask about it in a row. Safe on any thread:
    two may compute it for the same trace. Results are shared, so nobody may change them."""
    latest: tuple[Trace, _Found] | None = None

    @wraps(find)
    def found(trace: Trace) -> _Found:
        nonlocal latest
        known = latest
        if known is not None and known[0] is trace:
            return known[1]
        made = find(trace)
        latest = (trace, made)
        return made

    return found


# What several rules ask about the tool calls of one trace, in their order. Nobody may change it.
@once_a_trace
def wrong_calls(trace: Trace) -> list[bool]:
    """Returns whether each call failed."""
    return [failed(call) for call in trace.tool_calls]


@once_a_trace
def spelled_calls(trace: Trace) -> list[str | None]:
    """Returns the canonical arguments of each call, regardless of the defaults in tools' definitions."""
    return [canonical_arguments(call.arguments) for call in trace.tool_calls]


@once_a_trace
def read_only_hints(trace: Trace) -> dict[str, bool | None]:
    """Returns whether each defined tool only reads, by its first definition."""
    return {tool.name: tool.read_only for tool in reversed(trace.tools)}


def lost_at(trace: Trace) -> list[int]:
    """Returns the indexes of calls that failed for good: of those that were to change something; without such calls, of
    all, if all failed. Calls that only *may* have failed do not count.

    A later success of the same tool, or of another one that changes something, makes up for a failure; so does an
    earlier success of an equal call. "Not found" is an answer to a call that only looked, and turning a page or
    computing a number changes nothing.
    """
    calls, wrong = trace.tool_calls, wrong_calls(trace)
    if True not in wrong:
        return []
    changing = [at for at, call in enumerate(calls) if was_to_change(trace, call)]
    if not changing:
        return [*range(len(calls))] if all(wrong) and not all(is_absence(call) for call in calls) else []
    starts = {span.span_id: span.start_ns for span in trace.spans if span.kind is Kind.LLM}

    def makes_up(at: int, later: int) -> bool:
        """Returns whether a success that stands behind a failure came after it, not at the same moment."""
        one, other = calls[at], calls[later]
        if one.name == other.name or other.start_ns > one.start_ns:
            return True
        return starts.get(other.span_id) == other.start_ns == one.start_ns  # told of by one model's input, in order

    spelled = spelled_calls(trace)
    succeeded = {(call.name, spelled[at]) for at, call in enumerate(calls) if not wrong[at] and spelled[at] is not None}
    return [
        at
        for place, at in enumerate(changing)
        if wrong[at]
        and not any(not wrong[later] and makes_up(at, later) for later in changing[place + 1 :])
        and not (calls[at].has_arguments and (calls[at].name, spelled[at]) in succeeded)
    ]


def changed_by(trace: Trace) -> tuple[str, ...]:
    """Returns the names of the changing tools whose last call in the trace worked."""
    last = {call.name: at for at, call in enumerate(trace.tool_calls)}
    wrong = wrong_calls(trace)
    return tuple(name for name, at in last.items() if not wrong[at] and was_to_change(trace, trace.tool_calls[at]))


def was_to_change(trace: Trace, call: ToolCall) -> bool:
    """Whether a call was to change something, by its definition or its name."""
    hint = read_only_hints(trace).get(call.name)
    if hint is None and (only_looks(call.name) or computes(call.name)):
        return False
    return nature(call.name, hint) is Nature.CHANGING
