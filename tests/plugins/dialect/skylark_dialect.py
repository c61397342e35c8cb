"""Skylark: a framework that tells what it does under ``skylark.*``."""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.readers import (
    give_outcome,
    identifier,
    messages_of,
    prefixed_sessions,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Kind
from pandaeval_otel.raw import RawLog, RawSpan

_KINDS = {"run": Kind.AGENT, "model": Kind.LLM, "tool": Kind.TOOL}


class Skylark:
    """Reads ``skylark.step``, ``.name``, ``.input``, ``.output`` and ``.thread_id``."""

    name = "skylark"
    priority = 60
    roots = frozenset({"skylark"})
    scopes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        said = span.attributes
        kind = _KINDS.get(identifier(said.get("skylark.step")))
        if kind is None:
            return None
        reading = Reading(kind=kind, session_ids=prefixed_sessions(said, "skylark."))
        name, given, made = (said.get(f"skylark.{key}") for key in ("name", "input", "output"))
        if kind is Kind.TOOL:
            reading.tool_name = identifier(name)
            reading.arguments = tool_arguments(given)
            give_outcome(reading, tool_outcome(made))
        else:
            reading.agent_name = identifier(name) if kind is Kind.AGENT else ""
            reading.input = messages_of(given, "user")
            reading.output = messages_of(made, "assistant")
        return reading


DIALECT = Skylark()
