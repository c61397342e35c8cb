"""Gives tool calls their results out of the messages of later model calls.

The inputs of model calls are read from their end, where what is new stands, and only as far as there are calls without
a result: a run with a long history costs no more than a short one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter

from pandaeval_otel.model import Kind, Message, Span, ToolRequest, ToolResponse
from pandaeval_otel.normal.call import Call, Order, arguments_key
from pandaeval_otel.normal.speech import asks_for_tool, is_user_turn

_ID, _NAME, _ORDER = attrgetter("id"), attrgetter("name"), attrgetter("order")
_OWN = 1 << 62
"""Sorts behind all calls that a model call asks for itself."""
_Batch = tuple[list[ToolRequest], list[ToolResponse]]
_Pair = tuple[ToolRequest, ToolResponse | None]


def give_results(speakers: Sequence[Span], calls: Sequence[Call]) -> None:
    """Completes ``calls`` (in order) with the tool responses in the inputs of ``speakers`` (by start time), and in
    their outputs: of a model call, those of tools that its provider ran."""
    waiting = {id(call) for call in calls if not call.has_result}
    if not waiting:
        return
    made = _Made(calls)
    passed = 0
    due: dict[int, Call] = {}
    for before, messages in _told(speakers):
        while passed < len(calls) and calls[passed].order < before:
            if id(calls[passed]) in waiting:
                due[id(calls[passed])] = calls[passed]
            passed += 1
        if due:
            seen: Counter[tuple[str, Hashable]] = Counter()
            for requests, responses in _batches(messages):
                if not requests:
                    for response in responses:
                        _give(made.answered_by(response, before, due), response, due)
                for request, answer in reversed(_pairs(requests, responses)):
                    call = made.asked_by(request, before, seen)
                    if answer is not None:
                        _give(call, answer, due)
                if not due:
                    break


def _told(speakers: Sequence[Span]) -> Iterator[tuple[Order, Sequence[Message]]]:
    """Yields messages that may hold results, and before what all calls were made that these may answer."""
    for span in speakers:
        if span.kind is not Kind.LLM:
            yield (span.end_ns, 0), (*(span.input or ()), *(span.output or ()))
            continue
        yield (span.start_ns, 0), span.input or ()
        if any(message.role == "tool" for message in span.output or ()):
            yield (span.start_ns, _OWN), span.output or ()


def _give(call: Call | None, response: ToolResponse, due: dict[int, Call]) -> None:
    if call is not None and due.pop(id(call), None) is not None:
        call.result, call.has_result = response.result, True


def _batches(messages: Sequence[Message]) -> Iterator[_Batch]:
    """Yields requests with the responses that follow them, from the end back to the last user message. A batch has no
    requests where the server keeps the rest of the history."""
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


def _pairs(requests: Sequence[ToolRequest], responses: Sequence[ToolResponse]) -> list[_Pair]:
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
        for call in calls:
            if call.id:
                self._by_id.setdefault(call.id, []).append(call)

    def asked_by(self, request: ToolRequest, before: Order, seen: Counter[tuple[str, Hashable]]) -> Call | None:
        """Returns the call that ``request`` made. The caller passes requests latest first; ``seen`` counts equal ones,
        so that each takes the next earlier call made ``before``."""
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
        return found[at] if at >= 0 else None

    def answered_by(self, response: ToolResponse, before: Order, due: dict[int, Call]) -> Call | None:
        """Returns the call that a response without a request answers: the last due one with its id, or without an id
        the oldest due one."""
        if not response.id:
            return next((call for call in due.values() if response.name in ("", call.name)), None)
        found = self._by_id.get(response.id, [])
        latest = range(bisect_left(found, before, key=_ORDER) - 1, -1, -1)
        return next((found[at] for at in latest if id(found[at]) in due), None)
