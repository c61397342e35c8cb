"""A tool call under construction, from the places in which it was recorded."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._common import MAX_ERROR
from pandaeval_otel.dialects._envelopes import may_say_failed, unwrapped
from pandaeval_otel.model import Captured, Span, ToolCall, ToolRequest
from pandaeval_otel.normal.tree import Tree

# What stands here is made for every call, by position: keywords of so many fields would take several times as long.

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
    result: Any = None  # as Captured, where it stands on a span
    has_result: bool = False
    error: str | None = None
    matched: bool = field(init=False, default=False)
    _key: Hashable = field(init=False, default=None)

    @property
    def key(self) -> Hashable:
        """Equal for equal arguments."""
        if self._key is None:
            self._key = arguments_key(self.arguments)
        return self._key

    def finished(self) -> ToolCall:
        """The call as it is shown: its result without what frameworks wrap around it, which may say that it failed."""
        result = Captured(self.result, _shown) if self.has_result else None
        return ToolCall(
            self.name,
            self.id,
            self.arguments,
            result,
            self.error if self.error is not None or result is None else _failure(self.result),
            self.span_id,
            self.agent,
            self.start_ns,
            self.end_ns,
            self.has_arguments,
            self.has_result,
        )


def call_on_span(span: Span, tree: Tree, index: int) -> Call:
    """What a tool span tells."""
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


def call_asked_for(request: ToolRequest, span: Span, tree: Tree, index: int) -> Call:
    """What a model asked for. ``index`` is negative for calls that stand in the history before the model call."""
    at = span.start_ns if index < 0 else span.end_ns
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


def _shown(result: Any) -> Any:
    return unwrapped(result.value if type(result) is Captured else result)[0]


def _failure(result: Any) -> str | None:
    """What a result says went wrong, where a wrapper says that something did."""
    stated = result.stated if type(result) is Captured else result
    if not may_say_failed(stated):
        return None
    shown, failed = unwrapped(result.value if type(result) is Captured else result)
    return (shown if type(shown) is str else as_text(shown))[:MAX_ERROR] if failed else None


def arguments_key(arguments: Any) -> Hashable:
    """Equal for equal arguments, whatever the order of their names."""
    try:
        key: Hashable = frozenset(arguments.items()) if type(arguments) is dict else arguments
        hash(key)
        return key
    except TypeError:  # something inside is a list or a map
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
