"""Gives tool calls the results in later inputs. Inputs are read from the end, only while results are missing."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Container, Hashable, Iterator, Sequence
from operator import attrgetter

from pandaeval_otel.model import Kind, Message, Span, ToolRequest, ToolResponse
from pandaeval_otel.normal.call import ORDER, Call, Order, arguments_key
from pandaeval_otel.normal.speech import is_real_tool_call, is_user_turn, previous_turn

_ID, _NAME = attrgetter("id"), attrgetter("name")
_OWN = 1 << 62
"""Sorts after all calls that a model call requests."""


def attach_results(speakers: Sequence[Span], calls: Sequence[Call], next_turns: Container[str]) -> None:
    """Add results to ``calls`` from inputs of ``speakers`` and outputs with hosted tools.

    ``next_turns``: ids of model calls that begin another turn.
    """
    if all(call.has_result for call in calls):
        return
    made = _CallIndex(calls)
    passed = 0
    due: dict[int, Call] = {}
    for before, messages in _heard(speakers, next_turns):
        while passed < len(calls) and calls[passed].order < before:
            if not calls[passed].has_result:
                due[id(calls[passed])] = calls[passed]
            passed += 1
        if due:
            _answer(messages, before, made, due)


def _answer(messages: Sequence[Message], before: Order, made: _CallIndex, due: dict[int, Call]) -> None:
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
            elif type(part) is ToolRequest and is_real_tool_call(part):
                requests.append(part)
    if requests or responses:
        yield requests[::-1], responses[::-1]


def _pairs(
    requests: Sequence[ToolRequest], responses: Sequence[ToolResponse]
) -> list[tuple[ToolRequest, ToolResponse | None]]:
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


class _CallIndex:
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
        at = bisect_left(found, before, key=ORDER) - seen[key]
        if at >= 0:
            return found[at]
        return None

    def answered_by(
        self, responses: Sequence[ToolResponse], before: Order
    ) -> Iterator[tuple[Call | None, ToolResponse]]:
        at = bisect_left(self._calls, before, key=ORDER)
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
        for last in range(bisect_left(calls, before, key=ORDER) - 1, -1, -1):
            if not calls[last].has_result:
                return calls[last]
            del calls[last]
        return None
