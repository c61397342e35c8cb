"""Reads name, status and general attributes of any span, as the last dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Dialect,
    Logs,
    RawSpan,
    Reading,
    error_of,
    first,
    give_error,
    give_outcome,
    identifier,
    kinds,
    session_candidates,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import STATUS_ERROR

KIND_BY_NAME = kinds(
    tool="execute_tool",
    agent="invoke_agent",
    workflow="invoke_workflow",
    llm=("chat", "text_completion", "generate_content"),
    embedding="embeddings",
    retrieval="retrieval",
)
"""Kinds by the first word of a two-word span name, as in the GenAI conventions."""

_SESSION_RANKS = {
    semconv.PANDAEVAL_SESSION_ID: semconv.RANK_OVERRIDE,
    semconv.SESSION_ID: semconv.RANK_SESSION,
    semconv.LANGFUSE_SESSION_ID: semconv.RANK_SESSION,
    "mirascope.ops.session.id": semconv.RANK_DIALECT,
}
_USER_KEYS = (semconv.USER_ID, "enduser.id", "langfuse.user.id")
_AGENT_KEY = "upsonic.agent.name"
_KEYS = frozenset({semconv.ERROR_TYPE, _AGENT_KEY, *_SESSION_RANKS, *_USER_KEYS})
_TOOL_NAME = ".tool.name"
"""End of the key by which applications name a tool on their own spans."""
_GIVEN, _RETURNED = ("arguments", "args", "input", "parameters"), ("result", "output", "response")
_FAILED = ("error", "failed")


def kind_by_name(name: str) -> tuple[Kind | None, str]:
    """Return the kind in a span's name, and its tool, agent or model; else ``(None, "")``."""
    word, _, rest = name.partition(" ")
    kind = KIND_BY_NAME.get(word) if rest else None
    if kind:
        return (kind, rest)
    return (None, "")


def own_tool(attributes: Mapping[str, Any]) -> tuple[str, str]:
    """Return prefix and tool name of an application's own keys, such as ``shop.tool.name``; else ``""``."""
    key = next((key for key in attributes if key.endswith(_TOOL_NAME)), "")
    name = identifier(attributes[key]) if key else ""
    return (key.removesuffix("name"), name) if name else ("", "")


class Plain(Dialect):
    name = "plain"
    priority = 0

    def silent(self, keys: Collection[str]) -> bool:
        # Where the operation is stated, a name that was made from it adds nothing.
        return semconv.OPERATION in keys and _KEYS.isdisjoint(keys)

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        is_stated = semconv.OPERATION in attributes
        kind, name = (None, "") if is_stated else kind_by_name(span.name)
        own = ""
        if kind is None and not is_stated:
            own, name = own_tool(attributes)
            kind = Kind.TOOL if own else None
        # Nearly all spans of other dialects have nothing that is read here.
        bare = _KEYS.isdisjoint(attributes) and not (span.events or logs or span.resource.names_session)
        if kind is None and bare and span.status_code != STATUS_ERROR:
            return None
        error = error_of(span, logs)
        sessions = session_candidates(attributes, span.resource, _SESSION_RANKS)
        user = identifier(first(attributes, _USER_KEYS))
        if not user and logs:
            users = (identifier(first(log.attributes, _USER_KEYS)) for log in logs)
            user = next(filter(None, users), "")
        agent = identifier(attributes.get(_AGENT_KEY)) or name * (kind is Kind.AGENT)
        if kind is None and error is None and not sessions and not user and not agent:
            return None
        reading = Reading(kind, error=error, session_ids=sessions, user_id=user)
        reading.tool_name = name if kind is Kind.TOOL else ""
        if own:
            _read_own(reading, own, attributes)
        reading.agent_name = agent
        return reading


def _read_own(reading: Reading, prefix: str, attributes: Mapping[str, Any]) -> None:
    reading.arguments = tool_arguments(first(attributes, [prefix + word for word in _GIVEN]))
    give_outcome(reading, tool_outcome(first(attributes, [prefix + word for word in _RETURNED])))
    if reading.error is None and attributes.get(f"{prefix}status") in _FAILED:
        give_error(reading, reading.result and reading.result.value)


DIALECT = Plain()
