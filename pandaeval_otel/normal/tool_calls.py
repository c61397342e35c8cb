"""Collects every tool call of a trace once, in order, with its arguments and result, wherever they were recorded.

A call may stand on a tool span, in the model's answer that asks for it, and in the input of the next model call (with
its result). Call ids repeat in real traces and are missing in others, so that spans and requests are brought together
by id, then by arguments, then by name, each time in the order in which they were made.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter

from pandaeval_otel.dialects._tool_values import is_final_answer
from pandaeval_otel.model import Kind, Span, ToolCall, ToolRequest
from pandaeval_otel.normal.calls import Call, arguments_key, call_asked_for, call_on_span
from pandaeval_otel.normal.names import asked_name
from pandaeval_otel.normal.speech import current_turn, tool_requests
from pandaeval_otel.normal.tool_results import give_results
from pandaeval_otel.normal.tree import RUNS, Tree

# To look up a member of an enum costs several times what these cost, and it is done for every span.
_LLM, _TOOL = Kind.LLM, Kind.TOOL
_Key = tuple[Hashable, str] | None
_KeyOf = Callable[[Call, str], _Key]

_ORDER = attrgetter("order")
_HISTORY = -1_000_000_000
"""Calls out of the history stand before those that the model call itself asks for."""


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """The calls of a trace by the time at which they were asked for."""
    run = [
        call_on_span(span, tree, index)
        for index, span in enumerate(tree.spans)
        if span.kind is _TOOL and not is_final_answer(span.tool_name, span.arguments and span.arguments.value)
    ]
    speakers = [span for span in tree.spans if span.kind is _LLM and (span.input or span.output)]
    asked = _asked(speakers, tree)
    if not speakers or not (run or asked):
        speakers = [span for span in tree.roots if span.kind in RUNS]
        asked = _asked(speakers, tree)
    _match(run, asked)
    calls = sorted([*run, *[call for call in asked if not call.matched]], key=_ORDER)
    give_results(speakers, calls)
    return tuple([call.finished() for call in calls])


def _asked(speakers: Sequence[Span], tree: Tree) -> list[Call]:
    """What was asked for in this trace, and what stands as asked for in its first and last input and nowhere else:
    calls of earlier traces, where each model call is a trace, and those that an instrumentation left out of outputs."""
    found: list[Call] = []
    for span in speakers:
        if span.output:
            for index, request in enumerate(tool_requests(span.output)):
                found.append(call_asked_for(request, span, tree, index))
    for span in (speakers[0], speakers[-1])[: len(speakers)] if speakers else ():
        # What an input holds was asked for before that call, or earlier in the history that was read already.
        told = current_turn(span.input) if span.input else ()
        history = tool_requests(told) if told else ()
        if history:
            known = _Known([call for call in found if call.order < (span.start_ns, _HISTORY)])
            found += [
                call_asked_for(request, span, tree, _HISTORY + index)
                for index, request in enumerate(history)
                if not known.takes(request)
            ]
    return found


class _Known:
    """Calls that are known: by their ids, and where there are none or others by what was called, ticked off one by
    one."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._ids = {(call.id, call.name) for call in calls if call.id}
        self._left: Counter[tuple[str, Hashable]] | None = None  # counted when it is first asked for

    def takes(self, request: ToolRequest) -> bool:
        """Whether ``request`` is one of them that was not ticked off before."""
        if (request.id, request.name) in self._ids:
            return True
        if self._left is None:
            self._left = Counter([(call.name, call.key) for call in self._calls])
        key = (request.name, arguments_key(request.arguments))
        self._left[key] -= 1
        return self._left[key] >= 0


def _match(run: Sequence[Call], asked: Sequence[Call]) -> None:
    """Finds for each tool span the request that led to it, and takes over what the span does not state."""
    if not run or not asked:
        return
    names = {call.name for call in asked}
    plain = {name: asked_name(name, names) for name in {call.name for call in run}}
    by_id = {(request.id, request.name): request for request in asked if request.id}
    if len(by_id) == len(asked):  # as nearly always: no id twice, and none missing
        for call in run:
            found = by_id.pop((call.id, plain[call.name]), None)
            if found is not None:
                _unite(call, found)
        if not by_id:
            return
        run = [call for call in run if not call.matched]
        asked = [*by_id.values()]
    for of_span, of_request in _WAYS:
        waiting: dict[_Key, deque[Call]] = {}
        for request in asked:
            key = of_request(request, request.name)
            if key is not None:
                waiting.setdefault(key, deque()).append(request)
        for call in run:
            queue = waiting.get(of_span(call, plain[call.name]))
            if queue:
                _unite(call, queue.popleft())
        run = [call for call in run if not call.matched]
        asked = [request for request in asked if not request.matched]
        if not run or not asked:
            return


def _by_id(call: Call, name: str) -> _Key:
    return (call.id, name) if call.id else None


def _by_arguments(call: Call, name: str) -> _Key:
    return (call.key, name) if call.has_arguments else None


def _by_name_with_id(call: Call, name: str) -> _Key:
    return ("", name) if call.id else None


def _by_name_without_id(call: Call, name: str) -> _Key:
    return None if call.id else ("", name)


def _by_name(call: Call, name: str) -> _Key:
    return ("", name)


_WAYS: tuple[tuple[_KeyOf, _KeyOf], ...] = (
    (_by_id, _by_id),
    (_by_arguments, _by_arguments),
    (_by_name_without_id, _by_name),
    (_by_name_with_id, _by_name_without_id),
)
"""How a span and a request are known to be one call, best first. Two ids that differ are two calls, unless even the
arguments are equal: some instrumentations make up ids of their own."""


def _unite(call: Call, request: Call) -> None:
    call.matched = request.matched = True
    call.name = request.name
    call.id = call.id or request.id
    call.order = request.order
    if not call.has_arguments:
        call.arguments, call.has_arguments = request.arguments, request.has_arguments
