"""Collects the tool calls in models' answers and in the history of their inputs."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

from pandaeval_otel.model import Kind, Message, Span, ToolRequest
from pandaeval_otel.normal.call import Call, arguments_key
from pandaeval_otel.normal.speech import by_user_message, current_turn, is_user_turn, previous_turn, tool_requests
from pandaeval_otel.normal.tree import Tree

_TOOL = Kind.TOOL
_HISTORY = -1_000_000_000
"""Sorts the calls in a model call's history before the calls that it requests."""


def requested_calls(speakers: Sequence[Span], tree: Tree, groups: Sequence[Sequence[Span]]) -> list[Call]:
    """Return the calls requested in this trace, plus calls only in its first or last input or a next turn's history."""
    calls = [
        requested_call(request, span, tree, index)
        for span in speakers
        for index, request in enumerate(_once(tool_requests(span.output or ())))
    ]
    for span in (*speakers[:1], *speakers[1:][-1:]):
        # The model requested the calls in an input before this call, or earlier in the history.
        history = tool_requests(current_turn(span.input or ()))
        known = _Known([call for call in calls if call.order < (span.start_ns, _HISTORY)]) if history else None
        for index, request in enumerate(history):
            if known is not None and not known.takes(request):
                calls.append(requested_call(request, span, tree, _HISTORY + index))
    starts = [span.start_ns for span in tree.spans if span.kind is _TOOL] if groups else []
    for group, after in pairwise(groups):
        if bisect_left(starts, group[0].start_ns) == bisect_left(starts, after[0].start_ns):
            calls += _calls_in_next_history(group, after[0], tree, calls)
    return calls


def _once(requests: Sequence[ToolRequest]) -> Sequence[ToolRequest]:
    """Drop requests that a stream repeated: equal ones with the same id."""
    if len(requests) < 2 or len({request.id for request in requests}) == len(requests):
        return requests
    once = {(each.id or at, each.name, arguments_key(each.arguments)): each for at, each in enumerate(requests)}
    return [*once.values()]


def turn_groups(speakers: Sequence[Span], tree: Tree) -> list[list[Span]]:
    """Return the model calls of each turn; empty if the first and last call answer the same message."""
    if len(speakers) < 2 or _last_user_message(speakers[0]) == _last_user_message(speakers[-1]):
        return []
    return by_user_message([span for span in speakers if not tree.asides(span)])


def _last_user_message(span: Span) -> Message | None:
    return next((message for message in reversed(span.input or ()) if is_user_turn(message)), None)


def _calls_in_next_history(group: Sequence[Span], after: Span, tree: Tree, calls: Sequence[Call]) -> list[Call]:
    since, until = group[0].start_ns, after.start_ns
    known = _Known([call for call in calls if since <= call.order[0] < until])
    return [
        requested_call(request, group[-1], tree, _HISTORY + index)
        for index, request in enumerate(tool_requests(previous_turn(after.input or ())))
        if not known.takes(request)
    ]


def requested_call(request: ToolRequest, span: Span, tree: Tree, index: int) -> Call:
    """Return a requested call. A negative ``index`` marks a call from the history."""
    at = span.end_ns
    if request.hosted or index < 0:
        at = span.start_ns + max(0, index)
    return Call(
        request.name,
        request.id,
        (span.start_ns, index),
        span.span_id,
        tree.agent(span),
        at,
        at,
        request.arguments,
        request.arguments is not None,
    )


class _Known:
    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._ids = {(call.id, call.name) for call in calls if call.id}
        self._left: Counter[tuple[str, Hashable]] | None = None  # counted on first use

    def takes(self, request: ToolRequest) -> bool:
        if (request.id, request.name) in self._ids:
            return True
        if self._left is None:
            self._left = Counter([(call.name, call.key) for call in self._calls])
        key = (request.name, arguments_key(request.arguments))
        self._left[key] -= 1
        return self._left[key] >= 0
