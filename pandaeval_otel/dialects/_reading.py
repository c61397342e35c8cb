"""The interface of a dialect, the reading that it returns, and all dialects: those of this folder, and those of
installed packages (entry points ``pandaeval.dialects``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from pandaeval_otel.base.plugins import NotUsableError, Plugin, find, installed
from pandaeval_otel.model import Captured, Kind, Message, ToolDefinition, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

Attributes = Mapping[str, Any]
Logs = Sequence[RawLog]
Switch = MappingProxyType[str, str]


@dataclass(slots=True)
class Reading:
    """The fields that one dialect found on one span. ``None`` (or an empty string or tuple) means "not stated": the
    next dialect is asked, so a dialect fills only fields that its own keys state. Each call returns a fresh object: the
    caller completes the reading of the highest dialect in place with those of the lower ones.

    ``input``/``output``: ``()`` when the content was captured and empty; ``None`` when it was not captured, was a
    placeholder (``<elided>``, ``[REDACTED]``, ``{}`` …) or could not be read.
    ``session_ids``: ``(rank, id)``, rank as in :mod:`pandaeval_otel.base.semconv` ``SESSION_RANKS``.
    """

    kind: Kind | None = None
    input: tuple[Message, ...] | None = None
    output: tuple[Message, ...] | None = None
    system: str | None = None
    tool_name: str = ""
    tool_call_id: str = ""
    arguments: Captured | None = None
    result: Captured | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    usage: Usage | None = None
    request_model: str = ""
    response_model: str = ""
    response_id: str = ""
    previous_response_id: str = ""
    agent_name: str = ""
    session_ids: tuple[tuple[int, str], ...] = ()
    user_id: str = ""
    documents: tuple[Any, ...] = ()
    content_refs: tuple[str, ...] = ()
    error: str | None = None
    notes: tuple[str, ...] = ()

    def stated(self) -> Reading | None:
        """Return the reading; ``None`` if no field is filled."""
        if _VALUES(self) == _VALUES(Reading()):
            return None
        return self


_VALUES = attrgetter(*Reading.__dataclass_fields__)


@runtime_checkable
class Dialect(Protocol):
    """Reads the spans of one instrumentation: one file with one object named ``DIALECT``. Pure: the same span gives the
    same reading.

    ``priority``: higher is asked first. Vendor dialects 50-90, the OTel GenAI conventions 40, generic fallbacks below.
    ``roots``: first segments of attribute keys (``"gen_ai"`` of ``gen_ai.system``) that make this dialect a candidate;
    ``scopes``: prefixes of instrumentation scope names that do; ``names``: prefixes of span names that do. Every
    candidate is offered the span; a dialect without any of these hints is offered every span.

    Three more hints are optional. ``shared_roots``: first segments of keys that other emitters use too. A dialect that
    knows a span by these alone is asked after all others; of several, the one that reads most keys comes first.
    ``marks``: attribute keys of which a span must have one for its roots to count, for a dialect that shares them with
    others. ``only_logs``: ``True`` for a dialect that reads only log records.

    ``content_switch``, optional too: how its users switch the capture of content on, by the name of an instrumentation
    scope, or its beginning up to a dot, or the dialect's own name. The collector logs the text where spans hold none.

    Two more methods are optional. ``silent(keys)`` returns whether the dialect says nothing of any span with these
    attribute keys that has no events, log records or error status, and no session on its resource; it is not offered
    such spans. ``read_rest(span, logs, said)`` is called instead of ``read``, with the (perhaps empty) reading of the
    dialects asked before; it may omit fields that ``said`` has, but no note.
    """

    name: str
    priority: int
    roots: frozenset[str] = frozenset()
    scopes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        """Return what this dialect understands of ``span`` and the log records with its span id; ``None`` if nothing.
        Must not raise, whatever the attributes hold; a value that does not parse stays the string that it was."""
        ...


def kinds(**words: str | tuple[str, ...]) -> dict[str, Kind]:
    """Return a table of kinds by the words for each."""
    table: dict[str, Kind] = {}
    for kind, stated in words.items():
        table |= dict.fromkeys((stated,) if isinstance(stated, str) else stated, Kind(kind))
    return table


def _types_of(hint: Any) -> tuple[type, ...]:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return tuple(get_origin(kind) or kind for kind in kinds)


@cache
def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, highest priority first. Raises :class:`ImportError` when one of ours cannot be imported; an
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

    _types: ClassVar = {name: _types_of(hint) for name, hint in get_type_hints(Reading).items()}

    def __init__(self, dialect: Dialect) -> None:
        self.name = dialect.name
        self.priority = dialect.priority
        self.roots = dialect.roots
        self.scopes = dialect.scopes
        self.names = dialect.names
        self.shared_roots: frozenset[str] = frozenset(getattr(dialect, "shared_roots", ()))
        self.marks: frozenset[str] = frozenset(getattr(dialect, "marks", ()))
        self.only_logs = bool(getattr(dialect, "only_logs", False))
        self.content_switch: Mapping[str, str] = getattr(dialect, "content_switch", {})
        self._dialect = dialect

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        """Read a span as :meth:`Dialect.read` does. Raises ``TypeError`` for a wrong reading."""
        reading: object = self._dialect.read(span, logs)
        if reading is None:
            return None
        if not isinstance(reading, Reading):
            raise TypeError(f"{self.name} handed back a {type(reading).__name__}, and no Reading")
        for name, kinds in self._types.items():
            if not isinstance(getattr(reading, name), kinds):
                raise TypeError(f"{self.name}: {name} is a {type(getattr(reading, name)).__name__}")
        if not all(isinstance(item, Message) for item in (*(reading.input or ()), *(reading.output or ()))):
            raise TypeError(f"{self.name}: input or output holds something that is no Message")
        return reading


def _check(dialect: object, taken: set[str]) -> None:
    """Raise :class:`NotUsableError` for an object that is no dialect or whose name is taken."""
    if not isinstance(dialect, Dialect):
        raise NotUsableError("its DIALECT lacks one of name, priority, roots, scopes, names and read")
    if type(dialect.name) is not str or not dialect.name or dialect.name in taken:
        raise NotUsableError(f"another dialect is called {dialect.name!r}, or that is no name")
    if type(dialect.priority) is not int:
        raise NotUsableError("its priority is no whole number")
    for name, kind in (("roots", frozenset), ("scopes", tuple), ("names", tuple)):
        words = getattr(dialect, name)
        if type(words) is not kind or not _are_words(words):
            raise NotUsableError(f"its {name} are no {kind.__name__} of texts")
    switch = getattr(dialect, "content_switch", {})
    if not isinstance(switch, Mapping) or not _are_words([*switch, *switch.values()]):
        raise NotUsableError("its content_switch is no mapping from texts to texts")


def _are_words(values: Sequence[object] | frozenset[object]) -> bool:
    return all(isinstance(value, str) and value for value in values)
