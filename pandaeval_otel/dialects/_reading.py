"""What a dialect is, and what it hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pandaeval_otel.model import Captured, Kind, Message, ToolDefinition, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan


@dataclass(slots=True)
class Reading:
    """What one dialect found on one span. ``None`` (or an empty string or tuple) means "this dialect does not say",
    and the next dialect is asked; so a dialect fills only what its own keys state. Each call hands back a fresh one:
    the reading of the highest dialect is completed in place with what those below it say.

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


@runtime_checkable
class Dialect(Protocol):
    """One file, one object named ``DIALECT``. Pure: the same span gives the same reading.

    ``priority``: higher is asked first. Vendor dialects 50-90, the OTel GenAI conventions 40, generic fallbacks below.
    ``roots``: first segments of attribute keys (``"gen_ai"`` of ``gen_ai.system``) that make this dialect a candidate;
    ``scopes``: prefixes of instrumentation scope names that do; ``names``: prefixes of span names that do.
    A span is offered to every candidate whose hint matches; an empty set of hints means "offered every span".

    Two more hints may be given. ``marks``: attribute keys of which a span must have one, to be offered by its roots,
    for a dialect that shares them with others. ``only_logs``: ``True`` where it reads nothing but log records.

    And two more methods. ``silent(keys)``: whether it says nothing of any span with these attribute keys that has no
    events, log records or error status, nor a session on its resource; such spans are not offered to it.
    ``read_rest(span, logs, said)``: as ``read``, where those asked before have ``said`` something (which may be
    nothing); it may leave out what they said, but no note that it would have made.
    """

    name: str
    priority: int
    roots: frozenset[str] = frozenset()
    scopes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        """What this dialect understands of ``span`` and the log records of the same span id; ``None`` if nothing.
        Must not raise, whatever the attributes hold; a value that does not parse is left as the string it was."""
        ...
