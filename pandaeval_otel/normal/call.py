"""A tool call under construction: what was recorded of it in several places is put together here."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._common import MAX_ERROR
from pandaeval_otel.dialects._tool_values import may_say_failed, unwrapped
from pandaeval_otel.model import Captured, ToolCall

Order = tuple[int, int]
"""Start of the asking model call (else of the tool span) in Unix nanoseconds, then the position among equals."""


@dataclass(slots=True)
class Call:
    """A tool call under construction. ``matched``: its tool span and the request for it have been united.

    There is one for every call, made by position: keywords for so many fields would take several times as long.
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
        """Returns the call as it is shown: the wrappers that frameworks put around a result are removed, and one that
        says that the tool failed makes the call an error."""
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


def _shown(result: Any) -> Any:
    return unwrapped(result.value if type(result) is Captured else result)[0]


def _failure(result: Any) -> str | None:
    """Returns the text of a result whose wrapper says that the tool failed, else ``None``."""
    stated = result.stated if type(result) is Captured else result
    if not may_say_failed(stated):
        return None
    shown, failed = unwrapped(result.value if type(result) is Captured else result)
    return (shown if type(shown) is str else as_text(shown))[:MAX_ERROR] if failed else None


def arguments_key(arguments: Any) -> Hashable:
    """Returns a key that is equal for equal arguments, whatever the order of their names."""
    try:
        key: Hashable = frozenset(arguments.items()) if type(arguments) is dict else arguments
        hash(key)
        return key
    except TypeError:  # something inside is a list or a map
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
