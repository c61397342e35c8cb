"""Collects every tool call of a trace once, in order, with its arguments and result, wherever they were recorded.

A call may stand on a tool span, in the model's answer that asks for it, and in the input of the next model call (with
its result). Call ids repeat in real traces and are missing in others, so that spans and requests are brought together
by id, then by arguments, then by name, each time in the order in which they were made.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from operator import attrgetter

from pandaeval_otel.dialects._tool_values import is_final_answer, may_be_final_answer
from pandaeval_otel.model import Kind, Span, ToolCall, ToolRequest
from pandaeval_otel.normal.call import Call, arguments_key
from pandaeval_otel.normal.speech import current_turn, tool_requests
from pandaeval_otel.normal.tool_results import give_results
from pandaeval_otel.normal.tree import RUNS, Tree

# Module constants: an enum lookup costs several times as much, and every span needs one.
_LLM, _TOOL = Kind.LLM, Kind.TOOL
_ORDER = attrgetter("order")
_HISTORY = -1_000_000_000
"""Sorts the calls in a model call's history before those that it asks for itself."""
_SEPARATOR = re.compile(r"[-./:\s]+|__")


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """Returns the calls of a trace, ordered by the time at which a model asked for them."""
    run = [
        call_on_span(span, tree, index)
        for index, span in enumerate(tree.spans)
        if span.kind is _TOOL
        and not (
            may_be_final_answer(span.tool_name)
            and is_final_answer(span.tool_name, span.arguments and span.arguments.value)
        )
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


def call_on_span(span: Span, tree: Tree, index: int) -> Call:
    """Returns the call that a tool span records."""
    return Call(
        span.tool_name or span.name,
        span.tool_call_id,
        (span.start_ns, index),
        span.span_id,
        tree.agent(span),
        span.start_ns,
        span.end_ns,
        span.arguments.value if span.arguments else None,
        span.arguments is not None,
        span.result,
        span.result is not None,
        span.error,
    )


def _asked(speakers: Sequence[Span], tree: Tree) -> list[Call]:
    """Returns the calls that models asked for in this trace, and those that only its first or last input mentions:
    calls of earlier traces (where each model call is a trace), and calls that an instrumentation left out of outputs.
    """
    found: list[Call] = []
    for span in speakers:
        if span.output:
            for index, request in enumerate(tool_requests(span.output)):
                found.append(call_asked_for(request, span, tree, index))
    for span in (speakers[0], speakers[-1])[: len(speakers)] if speakers else ():
        # A model asked for what an input mentions before that call, or earlier in the history that was read already.
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


def call_asked_for(request: ToolRequest, span: Span, tree: Tree, index: int) -> Call:
    """Returns the call that a model asked for. A negative ``index`` marks a call out of the model call's history. What
    the provider ran, it ran one after the other within the model call."""
    at = span.start_ns if index < 0 else span.start_ns + index if request.hosted else span.end_ns
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
    """Recognises requests for known calls: by id, else by name and arguments, where each call counts once."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._ids = {(call.id, call.name) for call in calls if call.id}
        self._left: Counter[tuple[str, Hashable]] | None = None  # counted on first use

    def takes(self, request: ToolRequest) -> bool:
        """Returns whether ``request`` is for a known call that no earlier request took."""
        if (request.id, request.name) in self._ids:
            return True
        if self._left is None:
            self._left = Counter([(call.name, call.key) for call in self._calls])
        key = (request.name, arguments_key(request.arguments))
        self._left[key] -= 1
        return self._left[key] >= 0


def _match(run: Sequence[Call], asked: Sequence[Call]) -> None:
    """Finds the request that led to each tool span, and completes the span's call with it."""
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


_Key = tuple[Hashable, str] | None
_KeyOf = Callable[[Call, str], _Key]
_by_id: _KeyOf = lambda call, name: (call.id, name) if call.id else None  # noqa: E731
_by_arguments: _KeyOf = lambda call, name: (call.key, name) if call.has_arguments else None  # noqa: E731
_by_name_without_id: _KeyOf = lambda call, name: None if call.id else ("", name)  # noqa: E731
_WAYS: tuple[tuple[_KeyOf, _KeyOf], ...] = (
    (_by_id, _by_id),
    (_by_arguments, _by_arguments),
    (_by_name_without_id, lambda _, name: ("", name)),
    (lambda call, name: ("", name) if call.id else None, _by_name_without_id),
)
"""Keys by which a span and a request are recognised as one call, best first. Two different ids are two calls unless
their arguments are equal: some instrumentations make up ids of their own."""


def _unite(call: Call, request: Call) -> None:
    call.matched = request.matched = True
    call.name = request.name
    call.id = call.id or request.id
    call.order = request.order
    if not call.has_arguments:
        call.arguments, call.has_arguments = request.arguments, request.has_arguments


def asked_name(run: str, asked: Container[str]) -> str:
    """Returns the name out of ``asked`` by which a model asked for the tool ``run``: ``run`` itself, or ``run`` without
    a prefix (``Ferry-book_ferry``) or suffix (``book_ferry.tool``). Returns ``run`` if there is none."""
    return run if run in asked else next((name for name in _inside(run) if name in asked), run)


def same_tool(one: str, other: str) -> bool:
    """Returns whether two names denote one tool, where one may have a prefix or suffix."""
    return one == other or asked_name(one, (other,)) == other or asked_name(other, (one,)) == one


def _inside(name: str) -> Iterator[str]:
    """Yields what follows each separator in a name, longest first, then what precedes the first separator."""
    found = list(_SEPARATOR.finditer(name))
    for separator in found:
        yield name[separator.end() :]
    if found:
        yield name[: found[0].start()]
