"""A call of a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pandaeval_otel.model.span import Captured


class _ReadWhenAsked:
    """A field that may be given as :class:`Captured`, and then is its value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return None  # the field's default
        given = getattr(instance, self._name)
        return given.value if type(given) is Captured else given

    def __set__(self, instance: object, value: Any) -> None:
        setattr(instance, self._name, value)


@dataclass(unsafe_hash=True)
class ToolCall:
    """One call of a tool, in the order of the run. ``arguments`` is a dict where it could be parsed.
    ``has_result`` tells a captured ``None`` from a result that was not captured."""

    name: str
    id: str = ""
    arguments: Any = None
    result: Any = _ReadWhenAsked()
    error: str | None = None
    span_id: str = ""
    agent: str = ""
    start_ns: int = 0
    end_ns: int = 0
    has_arguments: bool = False
    has_result: bool = False
