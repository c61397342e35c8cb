"""Small normal spans for tests, with automatic IDs and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from pandaeval_otel.model import (
    Captured,
    Kind,
    Message,
    Part,
    Span,
    Text,
    ToolRequest,
    ToolResponse,
)

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
MS = 1_000_000


class Spans:
    """A trace under construction. Spans start 1 ms apart and last 0.5 ms by default."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._made: dict[str, Span] = {}
        self._fixed: set[str] = set()

    def __call__(self) -> list[Span]:
        """Return all spans in creation order."""
        return list(self._made.values())

    def add(self, kind: Kind, under: Span | None = None, **fields: Any) -> Span:
        """Add a span; ``fields`` are those of :class:`Span`."""
        number = next(self._ids)
        start = fields.pop("start_ns", number * MS)
        made = Span(
            trace_id=TRACE_ID,
            span_id=f"{number:016x}",
            parent_id=under.span_id if under else "",
            name=fields.pop("name", f"{kind} {number}"),
            kind=kind,
            start_ns=start,
            end_ns=fields.get("end_ns", start + MS // 2),
        )
        if "end_ns" in fields:
            self._fixed.add(made.span_id)
        made = self._made[made.span_id] = replace(made, **fields)
        self._enclose(made)
        return made

    def agent(self, under: Span | None = None, name: str = "desk", **fields: Any) -> Span:
        return self.add(Kind.AGENT, under, agent_name=name, **fields)

    def llm(self, under: Span | None = None, given: Sequence[Message] = (), said: Any = None, **fields: Any) -> Span:
        """Add a model call. ``said``: text, message, or ``None`` for missing output."""
        output = (says(said),) if isinstance(said, str) else None if said is None else (said,)
        return self.add(Kind.LLM, under, input=tuple(given) or None, output=output, **fields)

    def tool(self, under: Span | None = None, name: str = "search", arguments: Any = None, **fields: Any) -> Span:
        """Add a tool span; ``result`` is the bare value."""
        captured = {"result": Captured(fields.pop("result"))} if "result" in fields else {}
        if arguments is not None:
            captured["arguments"] = Captured(arguments)
        return self.add(Kind.TOOL, under, tool_name=name, **captured, **fields)

    def _enclose(self, made: Span) -> None:
        above = self._made.get(made.parent_id)
        while above is not None and above.end_ns < made.end_ns and above.span_id not in self._fixed:
            self._made[above.span_id] = replace(above, end_ns=made.end_ns)
            above = self._made.get(above.parent_id)


def user(*parts: str | Part) -> Message:
    return Message("user", _parts(parts))


def says(*parts: str | Part) -> Message:
    """Return an assistant message, with text or tool calls."""
    return Message("assistant", _parts(parts))


def asks(name: str = "search", arguments: Any = None, id: str = "") -> ToolRequest:
    return ToolRequest(name, {"q": "oslo"} if arguments is None else arguments, id)


def gives(result: Any, id: str = "", name: str = "") -> Message:
    return Message("tool", (ToolResponse(result, id, name),))


def _parts(parts: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)
