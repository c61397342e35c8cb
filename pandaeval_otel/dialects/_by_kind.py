"""Dialects that tell a span's kind first, and then read the span by a table of keys and by a method of that kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pandaeval_otel.dialects._common import captured, give_outcome, one_session, said_by_user, tool_definitions
from pandaeval_otel.dialects._messages import messages_of, system_text
from pandaeval_otel.dialects._reading import Attributes, Dialect, Logs, Reading
from pandaeval_otel.dialects._runs import asked
from pandaeval_otel.dialects._tool_values import tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, first, identifier
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

Table = tuple[tuple[str, tuple[str, ...]], ...]
"""Names in :data:`_FIELDS`, each with the attributes that state the field, best first."""
_Set = Callable[[Reading, Any], None]
_NAMES = ("tool_name", "tool_call_id", "request_model", "response_model", "response_id", "agent_name", "user_id")


def _field(name: str, read: Callable[[Any], Any]) -> _Set:
    return lambda reading, value: setattr(reading, name, read(value))


_FIELDS: Mapping[str, _Set] = {
    **{name: _field(name, identifier) for name in _NAMES},
    "session_ids": _field("session_ids", one_session),
    "system": _field("system", system_text),
    "input": _field("input", lambda value: messages_of(value, "user")),
    "question": _field("input", said_by_user),
    "run_input": _field("input", lambda value: asked(value)[0]),
    "output": _field("output", lambda value: messages_of(value, "assistant")),
    "tools": _field("tools", tool_definitions),
    "arguments": _field("arguments", tool_arguments),
    "result": _field("result", captured),
    "outcome": lambda reading, value: give_outcome(reading, tool_outcome(value)),
    "documents": _field("documents", lambda value: tuple(as_list(value))),
}
"""Sets a field of a reading from the value of an attribute."""


def keys(**fields: str | tuple[str, ...]) -> Table:
    """Returns a table of fields by the attribute that states each, or by several attributes, best first."""
    return tuple((name, (stated,) if isinstance(stated, str) else stated) for name, stated in fields.items())


def fill(reading: Reading, attributes: Attributes, table: Table) -> None:
    """Fills the fields of a table whose attributes are there."""
    for name, stated in table:
        value = first(attributes, stated)
        if value is not None:
            _FIELDS[name](reading, value)


class ByKind(Dialect):
    """Reads a span by the tables ``any_keys`` and, for a kind, ``llm_keys``, ``tool_keys`` …, and by the methods
    :meth:`read_any` and ``read_llm``, ``read_tool`` … (``read_unstated``: no kind). ``attributes``: the span's."""

    reads_any_kind: ClassVar[bool] = False
    """Whether it also reads spans whose kind :meth:`kind_of` does not tell."""
    any_keys: ClassVar[Table] = ()
    _readers: ClassVar[dict[Kind | None, tuple[Table, Callable[..., None] | None]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = {kind: kind or "unstated" for kind in (*Kind, None)}
        cls._readers = {
            kind: (getattr(cls, f"{name}_keys", ()), getattr(cls, f"read_{name}", None)) for kind, name in named.items()
        }

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        """Returns the span's kind; ``None`` where this dialect cannot tell it."""
        raise NotImplementedError

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        """Reads the fields of spans of all kinds, before the rest."""

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        kind = self.kind_of(span, span.attributes)
        if kind is not None:
            return self.read_as(kind, span)
        if self.reads_any_kind:
            return self.read_as(None, span).stated()
        return None

    def read_as(self, kind: Kind | None, span: RawSpan) -> Reading:
        """Reads a span as one of this kind."""
        attributes = span.attributes
        reading = Reading(kind)
        fill(reading, attributes, self.any_keys)
        self.read_any(reading, span, attributes)
        table, read = self._readers[kind]
        fill(reading, attributes, table)
        if read is not None:
            read(self, reading, span, attributes)
        return reading
