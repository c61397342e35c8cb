"""Every tool call of a trace once, in order, with its arguments and result, wherever they were written down.

A call may stand on a tool span, in the model's answer that asks for it, and in the input of the next model call (with
its result). Call ids repeat in real traces, so calls and results are paired by id *and* by order and name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.model import Kind, Message, Span, ToolCall, ToolRequest, ToolResponse
from pandaeval_otel.normal.tree import Tree

NOT_TOOLS = frozenset({"(merged tools)", "final_result", "final_answer"})
"""Names under which frameworks emit a tool span that is no call of a tool: ADK's summary of parallel calls, and the
carriers of a structured final answer (Pydantic AI, smolagents)."""


@dataclass(slots=True)
class _Call:
    """A call being put together from its places."""

    name: str
    id: str = ""
    arguments: Any = None
    has_arguments: bool = False
    result: Any = None
    has_result: bool = False
    error: str | None = None
    span_id: str = ""
    asked_by: str = ""
    agent: str = ""
    start_ns: int = 0
    end_ns: int = 0
    order: tuple[int, int] = (0, 0)
    on_span: bool = False


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """The calls of a trace by the time at which they were made."""
    models = [span for span in tree.spans if span.kind is Kind.LLM]
    if not any(span.output or span.input for span in models):
        models = [span for span in tree.roots() if span.kind in (Kind.AGENT, Kind.WORKFLOW)]
    asked = _asked(models, tree)
    run = _on_spans(tree)
    _match(run, asked)
    calls = run + [call for call in asked if not call.on_span]
    _results_from_inputs(models, calls)
    calls.sort(key=lambda call: call.order)
    return tuple(_finish(call) for call in calls if call.name not in NOT_TOOLS)


def _on_spans(tree: Tree) -> list[_Call]:
    found = []
    for index, span in enumerate(tree.spans):
        if span.kind is not Kind.TOOL:
            continue
        found.append(
            _Call(
                name=span.tool_name or span.name,
                id=span.tool_call_id,
                arguments=span.arguments.value if span.arguments else None,
                has_arguments=span.arguments is not None,
                result=span.result.value if span.result else None,
                has_result=span.result is not None,
                error=span.error,
                span_id=span.span_id,
                agent=_agent_above(span, tree),
                start_ns=span.start_ns,
                end_ns=span.end_ns,
                order=(span.start_ns, index),
                on_span=True,
            )
        )
    return found


def _asked(models: Sequence[Span], tree: Tree) -> list[_Call]:
    """What models asked for, and the calls of earlier traces that the first model call of this one takes over."""
    found: list[_Call] = []
    if models and models[0].input:
        already = [request for span in models for message in span.output or () for request in message.tool_requests]
        for index, request in enumerate(_requests(current_turn(models[0].input))):
            if not any(_same_request(request, other) for other in already):
                found.append(_from_request(request, models[0], tree, (models[0].start_ns, index - 1_000_000)))
    for span in models:
        for index, request in enumerate(_requests(span.output or ())):
            found.append(_from_request(request, span, tree, (span.end_ns, index)))
    return found


def _from_request(request: ToolRequest, span: Span, tree: Tree, order: tuple[int, int]) -> _Call:
    return _Call(
        name=request.name,
        id=request.id,
        arguments=request.arguments,
        has_arguments=request.arguments is not None,
        span_id=span.span_id,
        asked_by=span.span_id,
        agent=_agent_above(span, tree),
        start_ns=order[0],
        end_ns=order[0],
        order=order,
    )


def _match(run: list[_Call], asked: list[_Call]) -> None:
    """Finds for each tool span the request that led to it, and takes over what the span does not state."""
    free = list(asked)
    for matches in (_by_id, _by_arguments, _by_name):
        for call in run:
            if call.asked_by:
                continue
            request = next((candidate for candidate in free if matches(call, candidate)), None)
            if request is None:
                continue
            free.remove(request)
            request.on_span = True
            call.asked_by = request.asked_by
            call.id = call.id or request.id
            if not call.has_arguments:
                call.arguments, call.has_arguments = request.arguments, request.has_arguments


def _by_id(call: _Call, request: _Call) -> bool:
    return bool(call.id) and call.id == request.id and _same_name(call.name, request.name)


def _by_arguments(call: _Call, request: _Call) -> bool:
    return (
        _same_name(call.name, request.name) and call.has_arguments and _key(call.arguments) == _key(request.arguments)
    )


def _by_name(call: _Call, request: _Call) -> bool:
    return _same_name(call.name, request.name) and not (call.id and request.id)


def _same_name(on_span: str, asked: str) -> bool:
    """Tool spans may carry a prefix (``Ferry-book_ferry``) or suffix (``book_ferry.tool``) around the asked name."""
    return on_span == asked or (len(asked) > 2 and (on_span.endswith(asked) or on_span.startswith(f"{asked}.")))


def _results_from_inputs(models: Sequence[Span], calls: list[_Call]) -> None:
    for span in models:
        messages = (*(span.input or ()), *(span.output or ())) if span.kind is not Kind.LLM else span.input or ()
        open_calls = [call for call in calls if not call.has_result]
        if not open_calls:
            return
        _pair(current_turn(messages), calls)


def _pair(messages: Sequence[Message], calls: list[_Call]) -> None:
    """Gives the tool responses of one model input to the calls that they answer."""
    waiting: list[tuple[ToolRequest, _Call | None]] = []
    taken: list[_Call] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolRequest):
                call = next((c for c in calls if _is_request(c, part) and not any(c is t for t in taken)), None)
                if call is not None:
                    taken.append(call)
                waiting.append((part, call))
            elif isinstance(part, ToolResponse):
                answered = _answered(part, waiting)
                if answered is not None:
                    waiting.remove(answered)
                    _give(answered[1], part)
                elif not waiting:
                    _give(_oldest_open(part, calls), part)


def _answered(
    response: ToolResponse, waiting: list[tuple[ToolRequest, _Call | None]]
) -> tuple[ToolRequest, _Call | None] | None:
    if response.id:
        same = [pair for pair in waiting if pair[0].id == response.id]
        if same:
            return same[0]
    if response.name:
        same = [pair for pair in waiting if pair[0].name == response.name]
        if same:
            return same[0]
    return waiting[0] if waiting and not (response.id and any(pair[0].id for pair in waiting)) else None


def _oldest_open(response: ToolResponse, calls: list[_Call]) -> _Call | None:
    """For inputs that hold only what is new (the history is on the server): the oldest call that fits."""
    still_open = [call for call in calls if not call.has_result]
    if response.id:
        return next((call for call in still_open if call.id == response.id), None)
    return next((call for call in still_open if not response.name or call.name == response.name), None)


def _give(call: _Call | None, response: ToolResponse) -> None:
    if call is not None and not call.has_result:
        call.result, call.has_result = response.result, True


def _is_request(call: _Call, request: ToolRequest) -> bool:
    if not _same_name(call.name, request.name):
        return False
    if call.id and request.id and call.id != request.id:
        return False
    return not call.has_arguments or request.arguments is None or _key(call.arguments) == _key(request.arguments)


def _same_request(one: ToolRequest, other: ToolRequest) -> bool:
    if one.id and other.id:
        return one.id == other.id and one.name == other.name
    return one.name == other.name and _key(one.arguments) == _key(other.arguments)


def _requests(messages: Iterable[Message]) -> Iterable[ToolRequest]:
    return (request for message in messages for request in message.tool_requests)


def current_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the last user message that says something: the rest is history."""
    for index in range(len(messages) - 1, -1, -1):
        if is_user_turn(messages[index]):
            return messages[index + 1 :]
    return messages


def is_user_turn(message: Message) -> bool:
    """A user speaks: text or media in role user; not tool results, not a framework's replay of another agent."""
    if message.role != "user" or not message.parts or message.tool_responses:
        return False
    return not message.text.startswith("For context:")


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _agent_above(span: Span, tree: Tree) -> str:
    if span.agent_name:
        return span.agent_name
    return next((above.agent_name for above in tree.ancestors(span) if above.agent_name), "")


def _finish(call: _Call) -> ToolCall:
    return ToolCall(
        name=call.name,
        id=call.id,
        arguments=call.arguments,
        result=call.result,
        error=call.error,
        span_id=call.span_id,
        agent=call.agent,
        start_ns=call.start_ns,
        end_ns=call.end_ns,
        has_arguments=call.has_arguments,
        has_result=call.has_result,
    )
