"""A tool call under construction, and how its result shows failure."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._common import MAX_ERROR
from pandaeval_otel.dialects._tool_values import may_say_failed, says_failed, unwrapped
from pandaeval_otel.model import Captured, ToolCall

Order = tuple[int, int]
"""Start of the requesting model call (else of the tool span) in Unix nanoseconds, then its position."""
ORDER = attrgetter("order")


@dataclass(slots=True)
class Call:
    """A tool call under construction. ``matched``: span and request are merged."""

    name: str
    id: str
    order: Order
    span_id: str
    agent: str
    start_ns: int
    end_ns: int
    arguments: Any = None
    has_arguments: bool = False
    result: Any = None  # as Captured, if it is on a span
    has_result: bool = False
    error: str | None = None
    matched: bool = field(init=False, default=False)
    _key: Hashable = field(init=False, default=None)

    @property
    def key(self) -> Hashable:
        if self._key is None:
            self._key = arguments_key(self.arguments)
        return self._key

    def finished(self) -> ToolCall:
        """Return the final call, unwrapped. A wrapper that reports failure sets the error."""
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
    except TypeError:  # contains a list or a map
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
