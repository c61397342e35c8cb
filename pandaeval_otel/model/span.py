"""One normalised step of an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import add, attrgetter
from typing import Any

from pandaeval_otel.model.message import Message

# These objects must not be changed. They are not frozen because setting the fields of a frozen object takes four
# times as long, and there are many.


class Kind(StrEnum):
    """The kind of a span's work. ``STEP`` is an internal step of a framework; ``OTHER`` is not a GenAI span."""

    AGENT = "agent"
    WORKFLOW = "workflow"
    LLM = "llm"
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    EMBEDDING = "embedding"
    STEP = "step"
    GUARDRAIL = "guardrail"
    EVALUATION = "evaluation"
    OTHER = "other"


class Captured:
    """A captured value, which may be ``None`` or ``""``; a field of type ``Captured | None`` is ``None`` if nothing was
    captured. So "not captured" and "captured and empty" never look alike.

    ``read``, which must not raise, converts ``value`` on first use: most results of tools are never used, and parsing
    them costs as much as all else on their spans. Safe on any thread: two may read the same value.
    """

    __slots__ = ("_held",)

    def __init__(self, value: Any, read: Callable[[Any], Any] | None = None) -> None:
        self._held = value, read  # always replaced as one

    @property
    def value(self) -> Any:
        value, read = self._held
        if read is not None:
            value = read(value)
            self._held = value, None
        return value

    @property
    def stated(self) -> Any:
        """The value, or as long as nobody used it, the object that it will be read from."""
        return self._held[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Captured):
            return NotImplemented
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((self.value,))

    def __repr__(self) -> str:
        return f"Captured(value={self.value!r})"


@dataclass(slots=True, unsafe_hash=True)
class ToolDefinition:
    """A tool that the model could choose. ``parameters`` is its JSON schema; ``read_only`` is its ``readOnlyHint``,
    else false for a ``destructiveHint``. ``agents``: those that had it, where agents of a trace had different tools."""

    name: str
    description: str = ""
    parameters: Any = None
    read_only: bool | None = None
    agents: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Usage:
    """The tokens of a model call or a run. ``input`` includes cached tokens and ``output`` includes reasoning, as the
    OTel conventions say.

    >>> (Usage(input=10, output=2) + Usage(input=5)).input
    15
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _TOKENS(self), _TOKENS(other)))


@dataclass(slots=True)
class Span:
    """One step of an agent: a span in normal form. Ids and times as in :class:`pandaeval_otel.model.raw.RawSpan`.

    ``input`` and ``output`` are ``None`` when content was not captured, and ``()`` when it was captured and empty.
    ``session_ids`` holds ``(rank, id)`` candidates, lowest rank first (see ``pandaeval_otel.normal.session``).
    ``error`` is a short text when the step failed, else ``None``.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: Kind
    start_ns: int
    end_ns: int
    error: str | None = None
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
    service: str = ""
    environment: str = ""
    scope: str = ""
    dialects: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    sampled: bool = True
    remote_parent: bool = False
    dropped_attributes: int = 0
    notes: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    """The few ``pandaeval.*`` attributes that metrics read (goal, knowledge, case id …)."""

    def but(self, **changed: Any) -> Span:
        """Return a copy with other values of some fields, in a fraction of the time of ``dataclasses.replace``."""
        span = Span(*_ALL(self))
        for name, value in changed.items():
            setattr(span, name, value)
        return span

    @property
    def model(self) -> str:
        """The model that answered, else the one that was asked for."""
        return self.response_model or self.request_model


_ALL, _TOKENS = (attrgetter(*kind.__dataclass_fields__) for kind in (Span, Usage))
