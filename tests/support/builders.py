"""Small normal spans for tests; ids and times count up, so tests state only relevant values."""

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
    """A trace under construction. Each span begins a millisecond after the previous and lasts half a millisecond, or
    encloses its children without ``end_ns``.
    """

    def __init__(self) -> None:
        self._ids = count(1)
        self._made: dict[str, Span] = {}
        self._fixed: set[str] = set()

    def __call__(self) -> list[Span]:
        """All spans, in the order of their making."""
        return list(self._made.values())

    def add(self, kind: Kind, under: Span | None = None, **fields: Any) -> Span:
        """A new span; ``fields`` are those of :class:`Span`."""
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
        """An agent's run."""
        return self.add(Kind.AGENT, under, agent_name=name, **fields)

    def llm(self, under: Span | None = None, given: Sequence[Message] = (), said: Any = None, **fields: Any) -> Span:
        """A model call. ``said``: a text, one message, or ``None`` for an output that was not captured."""
        output = (says(said),) if isinstance(said, str) else None if said is None else (said,)
        return self.add(Kind.LLM, under, input=tuple(given) or None, output=output, **fields)

    def tool(self, under: Span | None = None, name: str = "search", arguments: Any = None, **fields: Any) -> Span:
        """A tool span; ``result`` among ``fields`` is the bare value."""
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
    """The user says something."""
    return Message("user", _parts(parts))


def says(*parts: str | Part) -> Message:
    """The assistant says something, or asks for tools."""
    return Message("assistant", _parts(parts))


def asks(name: str = "search", arguments: Any = None, id: str = "") -> ToolRequest:
    """A model asks for a tool."""
    return ToolRequest(name, {"q": "oslo"} if arguments is None else arguments, id)


def gives(result: Any, id: str = "", name: str = "") -> Message:
    """A tool's answer."""
    return Message("tool", (ToolResponse(result, id, name),))


def _parts(parts: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)
