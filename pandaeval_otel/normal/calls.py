"""A tool call while it is put together from the places where it was written down."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.model import Span, ToolCall, ToolRequest
from pandaeval_otel.normal.tree import Tree

Order = tuple[int, int]
"""Unix nanoseconds of the asking model call's start (or the tool span's own), then the place among equals."""


@dataclass(slots=True)
class Call:
    """``matched``: the request behind a tool span, or the tool span behind a request, was found."""

    name: str
    id: str
    order: Order
    span_id: str
    agent: str
    start_ns: int
    end_ns: int
    arguments: Any = None
    has_arguments: bool = False
    result: Any = None
    has_result: bool = False
    error: str | None = None
    matched: bool = False
    _key: Hashable = None

    @property
    def key(self) -> Hashable:
        """Equal for equal arguments."""
        if self._key is None:
            self._key = arguments_key(self.arguments)
        return self._key

    def finished(self) -> ToolCall:
        """The call as it is shown."""
        return ToolCall(
            name=self.name,
            id=self.id,
            arguments=self.arguments,
            result=self.result,
            error=self.error,
            span_id=self.span_id,
            agent=self.agent,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            has_arguments=self.has_arguments,
            has_result=self.has_result,
        )


def call_on_span(span: Span, tree: Tree, index: int) -> Call:
    """What a tool span tells."""
    return Call(
        name=span.tool_name or span.name,
        id=span.tool_call_id,
        order=(span.start_ns, index),
        span_id=span.span_id,
        agent=tree.agent(span),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        arguments=span.arguments.value if span.arguments else None,
        has_arguments=span.arguments is not None,
        result=span.result.value if span.result else None,
        has_result=span.result is not None,
        error=span.error,
    )


def call_asked_for(request: ToolRequest, span: Span, tree: Tree, index: int) -> Call:
    """What a model asked for. ``index`` is negative for calls that stand in the history before the model call."""
    at = span.start_ns if index < 0 else span.end_ns
    return Call(
        name=request.name,
        id=request.id,
        order=(span.start_ns, index),
        span_id=span.span_id,
        agent=tree.agent(span),
        start_ns=at,
        end_ns=at,
        arguments=request.arguments,
        has_arguments=request.arguments is not None,
    )


def arguments_key(arguments: Any) -> Hashable:
    """Equal for equal arguments, whatever the order of their names."""
    try:
        key: Hashable = frozenset(arguments.items()) if type(arguments) is dict else arguments
        hash(key)
        return key
    except TypeError:  # something inside is a list or a map
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
