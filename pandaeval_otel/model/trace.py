"""A closed trace with its turns, tool calls and session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any

from pandaeval_otel.model.span import Captured, Kind, Span, ToolDefinition, Usage

_UNREAD = "_unread"
_END_NS = attrgetter("end_ns")


class _ReadWhenAsked:
    """A dataclass field that accepts a :class:`Captured`. The first access reads and stores the value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return None  # the field's default
        value = getattr(instance, _UNREAD).value
        setattr(instance, self._name, value)
        return value


@dataclass(unsafe_hash=True)
class ToolCall:
    """A tool call, in run order. ``arguments`` is a dict if parsed. ``has_result`` is true for a captured ``None``."""

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

    def __post_init__(self) -> None:
        if type(self.result) is Captured:
            setattr(self, _UNREAD, self.result)
            del self.result  # so that it is decoded on first access


class Trigger(StrEnum):
    """Why a trace was closed or a unit scored again."""

    EXPLICIT = "explicit"
    ROOT_ENDED = "root_ended"
    IDLE = "idle"
    MAX_AGE = "max_age"
    SPAN_LIMIT = "span_limit"
    MEMORY = "memory"
    SESSION_CHANGED = "session_changed"
    SHUTDOWN = "shutdown"
    FILE = "file"


FORCED = frozenset({Trigger.MAX_AGE, Trigger.SPAN_LIMIT, Trigger.MEMORY, Trigger.SHUTDOWN})
"""Triggers that can close a trace while the agent works: limits and shutdown."""


@dataclass(slots=True, unsafe_hash=True)
class Turn:
    """A user message and the outermost agent's answer: ``None`` if not captured, ``""`` if empty.

    ``media_only``: a side with content but no text. ``span_id``: the answering span. ``start_ns``: Unix nanoseconds, 0
    if unknown.
    """

    user: str | None
    assistant: str | None
    span_id: str = ""
    media_only: bool = False
    start_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OtherResult:
    """Another evaluator's result. ``source``: the evaluator or its instrumentation. ``span_id``: the evaluated span."""

    name: str
    source: str
    score: float | None = None
    label: str = ""
    explanation: str = ""
    span_id: str = ""


@dataclass(slots=True)
class Trace:
    """A closed trace in normal form.

    ``spans``: unique, by start. ``complete``: the root ended. ``digest`` identifies the evidence: equal spans in any
    order give an equal digest.

    ``responses``: response or conversation ids that a later trace may continue. ``continues``: the id that this trace
    continues. If the spans name a session, only the last response is kept and ``continues`` is empty.

    ``blocked``: the guardrail that stopped the run, and its reason. ``stopped``: the error or notice of a cancellation.
    ``truncated``: why the answer was cut off. ``runs``: parallel runs of a batch. ``evaluations``: other evaluators'
    results, never scored. ``utility``: the purpose of a trace that an editor or framework made for itself.
    """

    trace_id: str
    spans: tuple[Span, ...]
    root_span_id: str
    agent: str = ""
    agents: tuple[str, ...] = ()
    service: str = ""
    environment: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    error: str | None = None
    complete: bool = True
    fragment: bool = False
    trigger: Trigger = Trigger.FILE
    input: str | None = None
    output: str | None = None
    ends_in_tool_call: bool = False
    turns: tuple[Turn, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    reasoning: tuple[str, ...] = ()
    llm_calls: int = 0
    models: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    dialects: tuple[str, ...] = ()
    dropped_attributes: int = 0
    notes: tuple[str, ...] = ()
    digest: str = ""
    revision: int = 1
    late_spans: int = 0
    sampled: bool = True
    response_id: str = ""
    responses: tuple[str, ...] = ()
    continues: str = ""
    blocked: tuple[str, str] | None = None
    utility: str = ""
    stopped: str = ""
    truncated: str = ""
    runs: tuple[Trace, ...] = ()
    evaluations: tuple[OtherResult, ...] = ()

    def definition(self, call: ToolCall) -> ToolDefinition | None:
        """The called tool's definition, as the calling agent had it, or ``None``."""
        named = [tool for tool in self.tools if tool.name == call.name]
        return next((tool for tool in named if call.agent in tool.agents), named[0] if named else None)

    @property
    def failure(self) -> str | None:
        """The error of a failed run; ``None`` if a guardrail, user or application stopped it."""
        if self.blocked is None and not self.stopped:
            return self.error
        return None

    @property
    def status(self) -> str:
        """``error`` if the root failed, else ``ok``."""
        if self.error is not None:
            return "error"
        return "ok"

    @property
    def forced(self) -> bool:
        """Whether a cap or shutdown closed the trace before its root ended.

        Judged metrics must not treat it as finished.
        """
        return self.trigger in FORCED and not self.complete

    @property
    def is_step(self) -> bool:
        """Whether this is a step of a run with a trace per model call. The last step's trace shows the whole run."""
        if not self.ends_in_tool_call or self.error is not None or not (self.complete or self.fragment):
            return False
        kinds = [span.kind for span in self.spans if span.kind is not Kind.OTHER]
        tops = [span.kind for span in self.spans if not span.parent_id]
        return kinds.count(Kind.LLM) == len(kinds) and Kind.OTHER not in tops

    @property
    def start_ns(self) -> int:
        if self.spans:
            return self.spans[0].start_ns
        return 0

    @property
    def end_ns(self) -> int:
        return max(map(_END_NS, self.spans), default=0)


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: summaries of its decided traces, by start and trace id."""

    session_id: str
    traces: tuple[Any, ...] = ()
    closed: bool = False
