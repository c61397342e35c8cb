"""Defines the dialect interface and its readings, and loads built-in dialects and entry points
``pandaeval.dialects``.
"""

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
    """The fields that a dialect found on a span. Each call returns a new object, which the caller completes.

    ``None``, ``""`` or ``()`` means "not stated", so the next dialect is tried. Fill only fields that the dialect's own
    keys state.

    ``input``/``output``: ``()`` if captured and empty; ``None`` if not captured, a placeholder or unreadable.
    ``session_ids``: ``(rank, id)`` with ``SESSION_RANKS`` of :mod:`pandaeval_otel.base.semconv`.
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
        if _VALUES(self) == _VALUES(Reading()):
            return None
        return self


_VALUES = attrgetter(*Reading.__dataclass_fields__)


@runtime_checkable
class Dialect(Protocol):
    """Reads the spans of an instrumentation.

    Each file defines an object named ``DIALECT``. Pure: equal spans give equal readings.

    ``priority``: higher is tried first. Vendor dialects 50-90, OTel GenAI conventions 40, generic fallbacks lower. A
    dialect is a candidate if any of its hints matches: ``roots``, first segments of attribute keys (``"gen_ai"`` of
    ``gen_ai.system``); ``scopes``, prefixes of scope names; ``names``, prefixes of span names. A dialect without hints
    reads every span.

    Optional hints: ``shared_roots``, first segments that other emitters also use. Dialects that match only these are
    tried last, the dialect that reads most keys first. ``marks``: a span needs any of these keys for ``roots`` to
    match. ``only_logs``: the dialect reads only log records. ``content_switch``: how to enable content capture, by
    scope name, scope prefix or dialect name. The collector logs this text if content is missing.

    Optional methods: ``silent(keys)`` returns whether spans with only these keys give no reading. It assumes no events,
    log records, error status or session on the resource. ``read_rest(span, logs, said)`` replaces ``read`` and may omit
    fields in ``said``, but not notes.
    """

    name: str
    priority: int
    roots: frozenset[str] = frozenset()
    scopes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        """Read ``span`` and the log records with its span id, or return ``None``.

        Must not raise. Values that do not parse stay strings.
        """
        ...


def kinds(**words: str | tuple[str, ...]) -> dict[str, Kind]:
    table: dict[str, Kind] = {}
    for kind, stated in words.items():
        table |= dict.fromkeys((stated,) if isinstance(stated, str) else stated, Kind(kind))
    return table


def _types_of(hint: Any) -> tuple[type, ...]:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return tuple(get_origin(kind) or kind for kind in kinds)


@cache
def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, highest priority first. Unusable plug-ins are logged and skipped.

    Raises :class:`ImportError` if a built-in dialect fails to import.
    """
    found: list[Dialect] = [*find("pandaeval_otel.dialects", "DIALECT")]
    taken = {dialect.name for dialect in found}

    def check(plugin: Plugin) -> None:
        _check(plugin.value, taken)
        taken.add(plugin.value.name)

    found += [Foreign(plugin.value) for plugin in installed("pandaeval.dialects", "DIALECT", check).found]
    return tuple(sorted(found, key=lambda dialect: (-dialect.priority, dialect.name)))


class Foreign:
    """Checks the readings of another package's dialect. A wrong reading raises ``TypeError`` and is lost."""

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
    """Raise :class:`NotUsableError` if the object is no dialect or its name is taken."""
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
