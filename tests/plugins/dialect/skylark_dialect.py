"""Skylark: a framework that tells what it does under ``skylark.*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandaeval_otel import Kind, RawLog, RawSpan, Reading, readers

_KINDS = {"run": Kind.AGENT, "model": Kind.LLM, "tool": Kind.TOOL}


class Skylark:
    """Reads ``skylark.step``, ``.name``, ``.input``, ``.output`` and ``.thread_id``."""

    name = "skylark"
    priority = 60
    roots = frozenset({"skylark"})
    scopes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    content_switch: Mapping[str, str] = {"skylark": "set SKYLARK_RECORD_CONTENT=true"}

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        kind = _KINDS.get(readers.identifier(attributes.get("skylark.step")))
        if kind is None:
            return None
        reading = Reading(kind=kind, session_ids=readers.prefixed_sessions(attributes, "skylark."))
        name, given, made = (attributes.get(f"skylark.{key}") for key in ("name", "input", "output"))
        if kind is Kind.TOOL:
            reading.tool_name = readers.identifier(name)
            reading.arguments = readers.tool_arguments(given)
            readers.give_outcome(reading, readers.tool_outcome(made))
        else:
            reading.agent_name = readers.identifier(name) if kind is Kind.AGENT else ""
            reading.input = readers.messages_of(given, "user")
            reading.output = readers.messages_of(made, "assistant")
        return reading


DIALECT = Skylark()
