"""Dialects that first find a span's kind, then read it with that kind's tables and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pandaeval_otel.dialects._common import captured, give_outcome, one_session, said_by_user, tool_definitions
from pandaeval_otel.dialects._messages import messages_of, system_text
from pandaeval_otel.dialects._reading import Attributes, Dialect, Logs, Reading
from pandaeval_otel.dialects._runs import asked
from pandaeval_otel.dialects._tool_values import tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, first, identifier, parsed
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

Table = tuple[tuple[tuple[str, ...], str, Callable[[Any], Any]], ...]
"""Attributes, best first, with the field of a reading that they state, and how it is read."""
_NAMES = ("tool_name", "tool_call_id", "request_model", "response_model", "response_id", "agent_name", "user_id")


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (name, identifier) for name in _NAMES},
    "session_ids": ("session_ids", one_session),
    "system": ("system", system_text),
    "input": ("input", lambda value: messages_of(value, "user")),
    "question": ("input", said_by_user),
    "run_input": ("input", lambda value: asked(value)[0]),
    "output": ("output", lambda value: messages_of(value, "assistant")),
    "tools": ("tools", tool_definitions),
    "arguments": ("arguments", tool_arguments),
    "result": ("result", captured),
    "outcome": ("outcome", tool_outcome),
    "documents": ("documents", lambda value: tuple(as_list(value))),
}
"""The fields of tables: the field of a reading, and how it is read from an attribute."""


def keys(**fields: str | tuple[str, ...]) -> Table:
    """Return a table of fields by the attributes that state them, best first."""
    return tuple(((stated,) if isinstance(stated, str) else stated, *_FIELDS[name]) for name, stated in fields.items())


def fill(reading: Reading, attributes: Attributes, table: Table) -> None:
    for stated, field, read in table:
        value = attributes.get(stated[0]) if len(stated) == 1 else first(attributes, stated)
        if value is None:
            continue
        if field == "outcome":
            give_outcome(reading, read(value))
        else:
            setattr(reading, field, read(value))


class ByKind(Reading, Dialect):
    """A dialect whose instance is the reading of a span.

    Calls :meth:`kind_of`. Then fills fields from ``any_keys``, ``llm_keys``, ``tool_keys`` …, and from
    :meth:`read_any`, ``read_llm``, ``read_tool`` … (``read_unstated``: no kind).
    """

    __slots__ = ("attributes", "get", "logs", "span")
    reads_any_kind: ClassVar[bool] = False
    """Whether the dialect also reads spans without a kind from :meth:`kind_of`."""
    any_keys: ClassVar[Table] = ()
    _readers: ClassVar[dict[Kind | None, tuple[Table, Callable[..., None] | None]]]

    def __init__(self, span: RawSpan, logs: Logs) -> None:
        Reading.__init__(self)
        self.span = span
        self.logs = logs
        self.attributes = span.attributes
        self.get = span.attributes.get

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = {kind: kind or "unstated" for kind in (*Kind, None)}
        cls._readers = {
            kind: (getattr(cls, f"{name}_keys", ()), getattr(cls, f"read_{name}", None)) for kind, name in named.items()
        }

    @classmethod
    def read(cls, span: RawSpan, logs: Logs) -> Reading | None:
        return cls(span, logs).read_span()

    def read_span(self) -> Reading | None:
        kind = self.kind_of()
        if kind is not None:
            return self.read_as(kind)
        if self.reads_any_kind:
            return self.read_as(None).stated()
        return None

    def kind_of(self) -> Kind | None:
        """Return the span's kind, or ``None``."""
        raise NotImplementedError

    def read_as(self, kind: Kind | None) -> Reading:
        self.kind = kind
        if self.any_keys:
            self.fill(self.any_keys)
        self.read_any()
        table, read = self._readers[kind]
        if table:
            self.fill(table)
        if read is not None:
            read(self)
        return self

    def read_any(self) -> None:
        """Read fields that spans of any kind may have, before the fields of one kind."""

    def fill(self, table: Table) -> None:
        fill(self, self.attributes, table)

    def first(self, *keys: str) -> Any:
        return first(self.attributes, keys)

    def name_in(self, key: str) -> str:
        return identifier(self.get(key))

    def parsed(self, key: str) -> Any:
        return parsed(self.get(key))
