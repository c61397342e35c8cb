"""What a dialect hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pandaeval_otel.model import Captured, Kind, Message, ToolDefinition, Usage


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
