"""All dialects: those of this folder, and those of installed packages (entry points ``pandaeval.dialects``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import NoneType

from pandaeval_otel.base.plugins import NotUsableError, Plugin, find, installed
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.model import Captured, Kind, Message, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

_TYPES: dict[str, tuple[type, ...]] = {
    "kind": (Kind, NoneType),
    **dict.fromkeys(("input", "output", "tools"), (tuple, NoneType)),
    **dict.fromkeys(("system", "error"), (str, NoneType)),
    **dict.fromkeys(("arguments", "result"), (Captured, NoneType)),
    "usage": (Usage, NoneType),
    **dict.fromkeys(("tool_name", "tool_call_id", "request_model", "response_model", "response_id"), (str,)),
    **dict.fromkeys(("previous_response_id", "agent_name", "user_id"), (str,)),
    **dict.fromkeys(("session_ids", "documents", "content_refs", "notes"), (tuple,)),
}


@cache
def dialects() -> tuple[Dialect, ...]:
    """Returns all dialects, highest priority first. Raises :class:`ImportError` when one of ours cannot be imported; an
    unusable one of another package is logged and left out."""
    found: list[Dialect] = [*find("pandaeval_otel.dialects", "DIALECT")]
    taken = {dialect.name for dialect in found}

    def check(plugin: Plugin) -> None:
        _check(plugin.value, taken)
        taken.add(plugin.value.name)

    found += [Foreign(plugin.value) for plugin in installed("pandaeval.dialects", "DIALECT", check).found]
    return tuple(sorted(found, key=lambda dialect: (-dialect.priority, dialect.name)))


class Foreign:
    """Wraps a dialect of another package and checks its readings, on which all later steps rely: a wrong one raises
    ``TypeError``, which costs that reading alone."""

    def __init__(self, dialect: Dialect) -> None:
        self.name = dialect.name
        self.priority = dialect.priority
        self.roots = dialect.roots
        self.scopes = dialect.scopes
        self.names = dialect.names
        self.marks: frozenset[str] = frozenset(getattr(dialect, "marks", ()))
        self.only_logs = bool(getattr(dialect, "only_logs", False))
        self._dialect = dialect

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        """Reads a span as :meth:`Dialect.read` does. Raises ``TypeError`` for a wrong reading."""
        reading: object = self._dialect.read(span, logs)
        if reading is None:
            return None
        if not isinstance(reading, Reading):
            raise TypeError(f"{self.name} handed back a {type(reading).__name__}, and no Reading")
        for name, kinds in _TYPES.items():
            if not isinstance(getattr(reading, name), kinds):
                raise TypeError(f"{self.name}: {name} is a {type(getattr(reading, name)).__name__}")
        if not all(isinstance(each, Message) for each in (*(reading.input or ()), *(reading.output or ()))):
            raise TypeError(f"{self.name}: input or output holds something that is no Message")
        return reading


def _check(dialect: object, taken: set[str]) -> None:
    """Raises :class:`NotUsableError` for an object that is no dialect or whose name is taken."""
    if not isinstance(dialect, Dialect):
        raise NotUsableError("its DIALECT lacks one of name, priority, roots, scopes, names and read")
    if type(dialect.name) is not str or not dialect.name or dialect.name in taken:
        raise NotUsableError(f"another dialect is called {dialect.name!r}, or that is no name")
    if type(dialect.priority) is not int:
        raise NotUsableError("its priority is no whole number")
    if type(dialect.roots) is not frozenset or not _are_words(dialect.roots):
        raise NotUsableError("its roots are no frozenset of texts")
    for name, prefixes in (("scopes", dialect.scopes), ("names", dialect.names)):
        if type(prefixes) is not tuple or not _are_words(prefixes):
            raise NotUsableError(f"its {name} are no tuple of texts")


def _are_words(values: Sequence[object] | frozenset[object]) -> bool:
    return all(isinstance(value, str) and value for value in values)
