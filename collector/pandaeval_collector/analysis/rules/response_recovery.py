"""Tool calls that failed and that nothing made up for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
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


# What several rules ask about the tool calls of one trace, found out once.
class KnownCalls:
    """Facts about ``trace.tool_calls``, in their order, each computed when first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def wrong(self) -> list[bool]:
        """Whether each call failed."""
        return [failed(call) for call in self._trace.tool_calls]

    @cached_property
    def spelled(self) -> list[str | None]:
        """The canonical arguments of each call, regardless of the defaults in tools' definitions."""
        return [canonical_arguments(call.arguments) for call in self._trace.tool_calls]

    @cached_property
    def hints(self) -> dict[str, bool | None]:
        """Whether each defined tool only reads, by its first definition."""
        hints: dict[str, bool | None] = {}
        for tool in self._trace.tools:
            hints.setdefault(tool.name, tool.read_only)
        return hints


@once_a_trace
def known_calls(trace: Trace) -> KnownCalls:
    """Returns the facts of a trace's calls, which must not be changed."""
    return KnownCalls(trace)


def lost_at(trace: Trace) -> list[int]:
    """Returns the indexes of calls that failed for good: of those that were to change something; without such calls, of
    all, if all failed. Calls that only *may* have failed do not count.

    A later success of the same tool, or of another one that changes something, makes up for a failure; so does an
    earlier success of an equal call. "Not found" is an answer to a call that only looked, and turning a page or
    computing a number changes nothing.
    """
    calls = trace.tool_calls
    known = known_calls(trace)
    wrong = known.wrong
    if True not in wrong:
        return []
    changing = [at for at, call in enumerate(calls) if _changes(call, known.hints)]
    if not changing:
        return [*range(len(calls))] if all(wrong) and not all(is_absence(call) for call in calls) else []
    starts = {span.span_id: span.start_ns for span in trace.spans if span.kind is Kind.LLM}

    def makes_up(at: int, later: int) -> bool:
        """Returns whether a success that stands behind a failure came after it, not at the same moment."""
        one, other = calls[at], calls[later]
        if one.name == other.name or other.start_ns > one.start_ns:
            return True
        return starts.get(other.span_id) == other.start_ns == one.start_ns  # told of by one model's input, in order

    return [
        at
        for place, at in enumerate(changing)
        if wrong[at]
        and not any(not wrong[later] and makes_up(at, later) for later in changing[place + 1 :])
        and not _done_before(calls[at], calls, wrong)
    ]


def changed_by(trace: Trace) -> tuple[str, ...]:
    """Returns the names of the changing tools whose last call in the trace worked."""
    known = known_calls(trace)
    last = {call.name: at for at, call in enumerate(trace.tool_calls)}
    calls = trace.tool_calls
    return tuple(name for name, at in last.items() if _changes(calls[at], known.hints) and not known.wrong[at])


def was_to_change(trace: Trace, call: ToolCall) -> bool:
    """Whether a call was to change something, by its definition or its name."""
    return _changes(call, known_calls(trace).hints)


def _changes(call: ToolCall, hints: Mapping[str, bool | None]) -> bool:
    hint = hints.get(call.name)
    if hint is None and (only_looks(call.name) or computes(call.name)):
        return False
    return nature(call.name, hint) is Nature.CHANGING


def _done_before(lost: ToolCall, calls: tuple[ToolCall, ...], wrong: list[bool]) -> bool:
    """Returns whether an equal call succeeded, at any time."""
    if not lost.has_arguments:
        return False
    spelled = canonical_arguments(lost.arguments)
    return spelled is not None and any(
        not bad and call.name == lost.name and canonical_arguments(call.arguments) == spelled
        for call, bad in zip(calls, wrong, strict=True)
    )
