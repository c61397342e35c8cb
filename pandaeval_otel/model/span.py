"""A normalised step of an agent."""

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
    """The kind of a span's work. ``STEP``: a framework's internal step; ``OTHER``: no GenAI span."""

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
    """A captured value, possibly ``None`` or ``""``. A field ``Captured | None`` is ``None`` if not captured.

    ``read`` converts ``value`` on first use and must not raise. Thread-safe.
    """

    __slots__ = ("_held",)

    def __init__(self, value: Any, read: Callable[[Any], Any] | None = None) -> None:
        self._held = value, read  # always replaced together

    @property
    def value(self) -> Any:
        value, read = self._held
        if read is not None:
            value = read(value)
            self._held = value, None
        return value

    @property
    def stated(self) -> Any:
        """The value, or the unread object before first use."""
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
    """A tool offered to the model.

    ``parameters``: JSON schema. ``read_only``: ``readOnlyHint``, else false for a ``destructiveHint``. ``agents``: the
    agents with this tool, if agents differ.
    """

    name: str
    description: str = ""
    parameters: Any = None
    read_only: bool | None = None
    agents: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Usage:
    """Tokens of a model call or run. ``input`` includes cached tokens and ``output`` reasoning.

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
    """An agent step in normal form. Ids and times as in :class:`pandaeval_otel.model.raw.RawSpan`.

    ``input`` and ``output``: ``None`` if not captured, ``()`` if captured and empty. ``session_ids``: ``(rank, id)``,
    lowest rank first. ``error``: short text if the step failed, else ``None``.
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
        """Return a copy with changed fields."""
        span = Span(*_ALL(self))
        for name, value in changed.items():
            setattr(span, name, value)
        return span

    @property
    def model(self) -> str:
        """The model that answered, else the requested model."""
        return self.response_model or self.request_model


_ALL, _TOKENS = (attrgetter(*kind.__dataclass_fields__) for kind in (Span, Usage))
