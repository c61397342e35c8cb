"""Collects each tool call of a trace once, in order, with arguments and result.

A call may be on a tool span, in the model's answer, and with its result in the next input. Ids may repeat or be
missing. So calls are matched by id, then arguments, then name, in order.

Inputs are read from the end, and only while calls lack results, so a long history adds no cost.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._common import MAX_ERROR
from pandaeval_otel.dialects._tool_values import may_say_failed, says_failed, unwrapped
from pandaeval_otel.model import Captured, Kind, Message, Span, ToolCall, ToolRequest, ToolResponse
from pandaeval_otel.normal.speech import (
    asks_for_tool,
    by_user_message,
    current_turn,
    is_user_turn,
    previous_turn,
    tool_requests,
)
from pandaeval_otel.normal.tree import RUNS, Tree

# Module constants: an enum lookup costs several times as much, and every span needs one.
_LLM, _TOOL = Kind.LLM, Kind.TOOL
_ORDER = attrgetter("order")
_HISTORY = -1_000_000_000
"""Sorts the calls in a model call's history before those that it asks for itself."""
_SEPARATOR = re.compile(r"[-./:\s]+|__")
_SPELLING = re.compile(r"[^0-9a-zA-Z]+")
_ID, _NAME = attrgetter("id"), attrgetter("name")
_OWN = 1 << 62
"""Sorts behind all calls that a model call asks for itself."""
_Key = tuple[Hashable, str] | None
_WAYS = (("id", "id"), ("arguments", "arguments"), ("no id", "name"), ("has id", "no id"))
"""Keys that match a span and a request, best first. Different ids are different calls unless arguments are equal,
because some instrumentations invent ids.
"""
Order = tuple[int, int]
"""Start of the requesting model call (else of the tool span) in Unix nanoseconds, then its position."""


@dataclass(slots=True)
class Call:
    """A tool call under construction. ``matched``: span and request are merged.

    Created with positional arguments, which is several times faster.
    """

    name: str
    id: str
    order: Order
    span_id: str
    agent: str
    start_ns: int
    end_ns: int
    arguments: Any = None
    has_arguments: bool = False
    result: Any = None  # as Captured, where it stands on a span
    has_result: bool = False
    error: str | None = None
    matched: bool = field(init=False, default=False)
    _key: Hashable = field(init=False, default=None)

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal arguments."""
        if self._key is None:
            self._key = arguments_key(self.arguments)
        return self._key

    def finished(self) -> ToolCall:
        """Return the final call without framework wrappers around its result. A wrapper that reports failure sets the
        error.
        """
        error = self.error
        if error is None and self.has_result:
            error = _failure(self.result)
        return ToolCall(
            self.name,
            self.id,
            self.arguments,
            Captured(self.result, _shown) if self.has_result else None,
            error,
            self.span_id,
            self.agent,
            self.start_ns,
            self.end_ns,
            self.has_arguments,
            self.has_result,
        )


def _shown(result: Any) -> Any:
    return unwrapped(_value(result))[0]


def _value(result: Any) -> Any:
    if type(result) is Captured:
        return result.value
    return result


def _failure(result: Any) -> str | None:
    """Return the text of a result that reports a failed tool, in its wrapper or in a framework's words."""
    if not may_say_failed(result.stated if type(result) is Captured else result):
        return None
    text, failed = unwrapped(_value(result))
    if not failed and not says_failed(text):
        return None
    return (text if type(text) is str else as_text(text))[:MAX_ERROR]


def arguments_key(arguments: Any) -> Hashable:
    """Return a key that is equal for equal arguments in any order."""
    try:
        key: Hashable = frozenset(arguments.items()) if type(arguments) is dict else arguments
        hash(key)
        return key
    except TypeError:  # something inside is a list or a map
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """Return the calls of a trace, ordered by the time at which a model asked for them."""
    run = [call_on_span(span, tree, index) for index, span in enumerate(tree.spans) if span.kind is _TOOL]
    speakers = [span for span in tree.spans if span.kind is _LLM and (span.input or span.output)]
    groups = _groups(speakers, tree)
    asked = _asked(speakers, tree, groups)
    if not speakers or not (run or asked):
        speakers = [span for span in tree.roots if span.kind in RUNS]
        asked = _asked(speakers, tree, ())
    carried = _carried(tree)
    if carried:
        asked = [call for call in asked if call.id not in carried]
    _match(run, asked, {span.tool_name for span in tree.spans if span.kind is _TOOL and is_served(span)})
    calls = sorted([*run, *[call for call in asked if not call.matched]], key=_ORDER)
    give_results(speakers, calls, {group[0].span_id for group in groups[1:]})
    return tuple([call.finished() for call in calls])


def _caller(span: Span, tree: Tree) -> str:
    """Return the calling agent. A tool span with model calls below names the agent that it starts."""
    if span.agent_name and tree.children(span):
        above = tree.parent(span)
        if above is not None and any(inner.kind is _LLM for inner in tree.below(span)):
            return tree.agent(above)
    return tree.agent(span)


def is_served(span: Span) -> bool:
    """Return whether a tool's span records a call over MCP."""
    return "mcp" in span.dialects


def _carried(tree: Tree) -> set[str]:
    """Return the ids of the requests that handed over a run's answer."""
    return {
        request.id
        for root in tree.roots
        if root.kind in RUNS
        for message in root.output or ()
        for request in message.tool_requests
        if request.id and not asks_for_tool(request)
    }


def call_on_span(span: Span, tree: Tree, index: int) -> Call:
    """Return the call that a tool span records."""
    return Call(
        span.tool_name or span.name,
        span.tool_call_id,
        (span.start_ns, index),
        span.span_id,
        _caller(span, tree),
        span.start_ns,
        span.end_ns,
        span.arguments.value if span.arguments else None,
        span.arguments is not None,
        span.result,
        span.result is not None,
        span.error,
    )


def _asked(speakers: Sequence[Span], tree: Tree, groups: Sequence[Sequence[Span]]) -> list[Call]:
    """Return the calls requested in this trace, plus calls only in its first or last input: from earlier traces, or
    missing in outputs.
    """
    calls: list[Call] = []
    for span in speakers:
        for index, request in enumerate(tool_requests(span.output or ())):
            calls.append(call_asked_for(request, span, tree, index))
    for span in (*speakers[:1], *speakers[1:][-1:]):
        # A model asked for what an input mentions before that call, or earlier in the history that was read already.
        history = tool_requests(current_turn(span.input or ()))
        known = _Known([call for call in calls if call.order < (span.start_ns, _HISTORY)]) if history else None
        for index, request in enumerate(history):
            if known is not None and not known.takes(request):
                calls.append(call_asked_for(request, span, tree, _HISTORY + index))
    starts = [span.start_ns for span in tree.spans if span.kind is _TOOL] if groups else []
    for group, after in pairwise(groups):
        if bisect_left(starts, group[0].start_ns) == bisect_left(starts, after[0].start_ns):
            calls += _told_later(group, after[0], tree, calls)
    return calls


def _groups(speakers: Sequence[Span], tree: Tree) -> list[list[Span]]:
    """Return the model calls of each turn; nothing where the first and the last call answer the same message."""
    if len(speakers) < 2 or _heard_last(speakers[0]) == _heard_last(speakers[-1]):
        return []
    return by_user_message([span for span in speakers if not tree.asides(span)])


def _heard_last(span: Span) -> Message | None:
    return next((message for message in reversed(span.input or ()) if is_user_turn(message)), None)


def _told_later(group: Sequence[Span], after: Span, tree: Tree, calls: Sequence[Call]) -> list[Call]:
    """Return a turn's calls that only the next turn's first input contains, if the trace is a whole conversation.
    Turns with tool spans are skipped.
    """
    since, until = group[0].start_ns, after.start_ns
    known = _Known([call for call in calls if since <= call.order[0] < until])
    requests = tool_requests(previous_turn(after.input or ()))
    return [
        call_asked_for(request, group[-1], tree, _HISTORY + index)
        for index, request in enumerate(requests)
        if not known.takes(request)
    ]


def call_asked_for(request: ToolRequest, span: Span, tree: Tree, index: int) -> Call:
    """Return a requested call. A negative ``index`` marks a call from the history. Hosted calls run one after the
    other in the model call.
    """
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
    """Matches requests to known calls: by id, else by name and arguments. Each call matches once."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._ids = {(call.id, call.name) for call in calls if call.id}
        self._left: Counter[tuple[str, Hashable]] | None = None  # counted on first use

    def takes(self, request: ToolRequest) -> bool:
        """Return whether ``request`` is for a known call that no earlier request took."""
        if (request.id, request.name) in self._ids:
            return True
        if self._left is None:
            self._left = Counter([(call.name, call.key) for call in self._calls])
        key = (request.name, arguments_key(request.arguments))
        self._left[key] -= 1
        return self._left[key] >= 0


def _match(run: Sequence[Call], asked: Sequence[Call], served: Container[str]) -> None:
    """Match tool spans to requests and complete the calls. ``served``: tool names of MCP servers."""
    names = {call.name for call in asked}
    strict = {name: asked_name(name, names) for name in {call.name for call in run}}
    if _match_ids(run, asked, strict):
        return
    plain = _served_names(strict, names)
    for of_span, of_request in _WAYS:
        if "id" != of_span != "arguments":  # only the name identifies tools of MCP servers
            plain = {name: own if name in served else strict[name] for name, own in plain.items()}
        run, asked = ([call for call in calls if not call.matched] for calls in (run, asked))
        if not run or not asked:
            return
        _match_by(run, asked, (of_span, of_request), plain)


def _match_by(run: Sequence[Call], asked: Sequence[Call], ways: tuple[str, str], names: Mapping[str, str]) -> None:
    of_span, of_request = ways
    waiting: dict[_Key, deque[Call]] = {}
    for request in asked:
        waiting.setdefault(_key(of_request, request, request.name), deque()).append(request)
    waiting.pop(None, None)
    for call in run:
        queue = waiting.get(_key(of_span, call, names[call.name]))
        _unite(call, queue.popleft() if queue else None)


def _match_ids(run: Sequence[Call], asked: Sequence[Call], names: Mapping[str, str]) -> bool:
    """Match by id if ids are unique and complete, as usual. Returns whether all matched."""
    by_id = {(request.id, request.name): request for request in asked if request.id}
    if len(by_id) != len(asked):
        return False
    for call in run:
        _unite(call, by_id.pop((call.id, names[call.name]), None))
    return not by_id


def _served_names(names: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
    """Map executed tools to requested names, also if names differ by the MCP server."""
    found = dict(names)
    for run, own in names.items():
        if own not in asked:
            found[run] = next((name for name in sorted(asked) if same_served(run, name)), run)
    return found


def _key(way: str, call: Call, name: str) -> _Key:
    if way == "id":
        if call.id:
            return (call.id, name)
        return None
    if way == "arguments":
        if call.has_arguments:
            return (call.key, name)
        return None
    if way == "name" or bool(call.id) == (way == "has id"):
        return ("", name)
    return None


def _unite(call: Call, request: Call | None) -> None:
    if request is None:
        return
    call.matched = request.matched = True
    call.name = request.name
    call.id = call.id or request.id
    call.order = request.order
    if not call.has_arguments:
        call.arguments, call.has_arguments = request.arguments, request.has_arguments


def asked_name(run: str, asked: Container[str]) -> str:
    """Return the name in ``asked`` for the executed tool ``run``: equal, or without a prefix (``Ferry-book_ferry``)
    or suffix (``book_ferry.tool``). Returns ``run`` if there is none.
    """
    if run in asked:
        return run
    return next((name for name in _inside(run) if name in asked), run)


def same_tool(one: str, other: str) -> bool:
    """Return whether two names denote the same tool; either name may have a prefix or suffix."""
    return one == other or asked_name(one, (other,)) == other or asked_name(other, (one,)) == one


def same_served(one: str, other: str) -> bool:
    """Return whether two names denote the same tool of an MCP server; either may begin with the server's name."""
    short, long = sorted((_SPELLING.sub("_", one), _SPELLING.sub("_", other)), key=len)
    return bool(short) and (long == short or long.endswith(f"_{short}"))


def _inside(name: str) -> Iterator[str]:
    """Yield the text after each separator in a name, longest first, then the text before the first separator."""
    found = list(_SEPARATOR.finditer(name))
    for separator in found:
        yield name[separator.end() :]
    if found:
        yield name[: found[0].start()]


def give_results(speakers: Sequence[Span], calls: Sequence[Call], next_turns: Container[str] = ()) -> None:
    """Add results to ``calls`` (in order) from tool responses in inputs of ``speakers`` (by start) and in outputs
    with hosted tools. ``next_turns``: IDs of model calls that begin another turn; their inputs also contain the
    previous turn.
    """
    if all(call.has_result for call in calls):
        return
    made = _Made(calls)
    passed = 0
    due: dict[int, Call] = {}
    for before, messages in _heard(speakers, next_turns):
        while passed < len(calls) and calls[passed].order < before:
            if not calls[passed].has_result:
                due[id(calls[passed])] = calls[passed]
            passed += 1
        if due:
            _answer(messages, before, made, due)


def _answer(messages: Sequence[Message], before: Order, made: _Made, due: dict[int, Call]) -> None:
    """Give the calls that are ``due`` the results in ``messages``."""
    seen: Counter[tuple[str, Hashable]] = Counter()
    for requests, responses in _batches(messages):
        if not requests:
            for call, response in made.answered_by(responses, before):
                _give(call, response, due)
        for request, answer in reversed(_pairs(requests, responses)):
            _give(made.asked_by(request, before, seen), answer, due)
        if not due:
            return


def _heard(speakers: Sequence[Span], next_turns: Container[str]) -> Iterator[tuple[Order, Sequence[Message]]]:
    """Yield messages that may contain results, with the latest start of the calls that they can answer."""
    for span in speakers:
        if span.kind is not Kind.LLM:
            yield (span.end_ns, 0), (*(span.input or ()), *(span.output or ()))
            continue
        if span.span_id in next_turns:
            yield (span.start_ns, 0), previous_turn(span.input or ())
        yield (span.start_ns, 0), span.input or ()
        if any(message.role == "tool" for message in span.output or ()):
            yield (span.start_ns, _OWN), span.output or ()


def _give(call: Call | None, response: ToolResponse | None, due: dict[int, Call]) -> None:
    if response is not None and call is not None and due.pop(id(call), None) is not None:
        call.result, call.has_result = response.result, True


def _batches(messages: Sequence[Message]) -> Iterator[tuple[list[ToolRequest], list[ToolResponse]]]:
    """Yield requests and their responses, from the end back to the last user message. Requests are empty if the
    server keeps the history.
    """
    requests: list[ToolRequest] = []
    responses: list[ToolResponse] = []
    for message in reversed(messages):
        if message.role == "user" and is_user_turn(message):
            break
        for part in reversed(message.parts):
            if type(part) is ToolResponse:
                if requests:
                    yield requests[::-1], responses[::-1]
                    requests, responses = [], []
                responses.append(part)
            elif type(part) is ToolRequest and asks_for_tool(part):
                requests.append(part)
    if requests or responses:
        yield requests[::-1], responses[::-1]


def _pairs(
    requests: Sequence[ToolRequest], responses: Sequence[ToolResponse]
) -> list[tuple[ToolRequest, ToolResponse | None]]:
    """Pairs each request with its response: by id, then by name, then in order unless ids contradict."""
    answers: dict[int, ToolResponse] = {}
    left = list(responses)
    for named in (_ID, _NAME):
        open_requests: dict[str, deque[int]] = {}
        for at, request in enumerate(requests):
            if at not in answers and (name := named(request)):
                open_requests.setdefault(name, deque()).append(at)
        unused = []
        for response in left:
            queue = open_requests.get(named(response))
            if queue:
                answers[queue.popleft()] = response
            else:
                unused.append(response)
        left = unused
    still_open = [at for at in range(len(requests)) if at not in answers]
    if left and (len(left) == len(still_open) or not any(response.id for response in left)):
        answers.update(zip(still_open, left, strict=False))
    return [(request, answers.get(at)) for at, request in enumerate(requests)]


class _Made:
    """Finds the calls of a trace by id, or by name and arguments."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._by_id: dict[str, list[Call]] = {}
        self._by_arguments: dict[tuple[str, Hashable], list[Call]] | None = None
        self._calls = calls
        self._open: dict[str, list[Call]] = {}
        """Calls without a result, by id."""
        for call in calls:
            if call.id:
                self._by_id.setdefault(call.id, []).append(call)
                if not call.has_result:
                    self._open.setdefault(call.id, []).append(call)

    def asked_by(self, request: ToolRequest, before: Order, seen: Counter[tuple[str, Hashable]]) -> Call | None:
        """Return the call of ``request``. Pass requests latest first; ``seen`` counts equal requests, so that each
        takes the next earlier call made ``before``.
        """
        found = self._by_id.get(request.id) if request.id else None
        key: tuple[str, Hashable] = ("", request.id)
        if found is None:
            key = (request.name, arguments_key(request.arguments))
            if self._by_arguments is None:
                self._by_arguments = {}
                for call in self._calls:
                    self._by_arguments.setdefault((call.name, call.key), []).append(call)
            found = self._by_arguments.get(key, [])
        seen[key] += 1
        at = bisect_left(found, before, key=_ORDER) - seen[key]
        if at >= 0:
            return found[at]
        return None

    def answered_by(
        self, responses: Sequence[ToolResponse], before: Order
    ) -> Iterator[tuple[Call | None, ToolResponse]]:
        """Yield responses without requests and their calls: the last call with the id that has no result. Responses
        without ids belong to the last calls in order, because inputs repeat earlier responses.
        """
        at = bisect_left(self._calls, before, key=_ORDER)
        for response in reversed(responses):
            if response.id:
                yield self._last_open(response.id, before), response
                continue
            at = next((n for n in range(at - 1, -1, -1) if response.name in ("", self._calls[n].name)), -1)
            if at < 0:
                return
            yield self._calls[at], response

    def _last_open(self, id_: str, before: Order) -> Call | None:
        calls = self._open.get(id_, [])
        for last in range(bisect_left(calls, before, key=_ORDER) - 1, -1, -1):
            if not calls[last].has_result:
                return calls[last]
            del calls[last]
        return None
