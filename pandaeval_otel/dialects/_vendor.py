"""What the dialects of instrumentations (as opposed to frameworks) have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import MAX_ERROR, SessionIds, session_id
from pandaeval_otel.dialects._messages import Messages
from pandaeval_otel.dialects._reading import Reading
from pandaeval_otel.dialects._tool_values import Outcome
from pandaeval_otel.dialects._values import identifier, parsed
from pandaeval_otel.model import Kind, Message, Text

CUT = ("messages were cut short by a length limit",)

SESSION_WORDS = ("session_id", "conversation_id", "thread_id", "sessionId", "conversationId", "threadId", "chat_id")
"""Names under which applications put the id of a conversation into free metadata, best first."""
USER_WORDS = ("user_id", "userId")

_GENERIC_NAMES = frozenset(
    {
        *("agent", "agents", "agent_executor", "agentexecutor", "langgraph", "runnablesequence", "runnableagent"),
        *("runnablelambda", "runnableparallel", "call_model", "model", "functionagent", "reactagent"),
        *("agentworkflow", "agent workflow", "team", "workflow", "chain", "llmchain", "pipeline", "crew"),
    }
)


def agent_named(name: str) -> str:
    """``name`` where somebody chose it, ``""`` where it is only the class or the node of some framework."""
    return "" if name.lower() in _GENERIC_NAMES else identifier(name)


def system_of(messages: Messages | None) -> str | None:
    """The text of the system messages among ``messages``."""
    found = [message.text for message in messages or () if message.role == "system" and message.text]
    return "\n".join(found) if found else None


def said_by_user(text: str) -> Messages:
    """One user message."""
    return (Message("user", (Text(text),)),)


def metadata_sessions(metadata: Any) -> SessionIds:
    """``(rank, id)`` from free metadata (a map, or JSON of one) that names a conversation."""
    if type(metadata) is str and not any(word in metadata for word in SESSION_WORDS):
        return ()
    found = parsed(metadata)
    if not isinstance(found, Mapping):
        return ()
    name = next((name for word in SESSION_WORDS if (name := session_id(found.get(word)))), "")
    return ((semconv.RANK_DIALECT, name),) if name else ()


def prefixed_sessions(attributes: Mapping[str, Any], prefix: str) -> SessionIds:
    """``(rank, id)`` from an attribute ``prefix`` + word that names a conversation; values may be JSON strings."""
    for key in _prefixed(prefix, SESSION_WORDS):
        if key in attributes and (name := session_id(parsed(attributes[key]))):
            return ((semconv.RANK_DIALECT, name),)
    return ()


def prefixed_user(attributes: Mapping[str, Any], prefix: str) -> str:
    """The user that an attribute ``prefix`` + word names."""
    for key in _prefixed(prefix, USER_WORDS):
        if key in attributes and (name := identifier(parsed(attributes[key]))):
            return name
    return ""


@cache
def _prefixed(prefix: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix + word for word in words)


def give_outcome(reading: Reading, outcome: Outcome) -> None:
    """Puts what a tool gave back onto its span's reading; a result that says that it failed is the span's error."""
    reading.result = outcome.result
    reading.tool_call_id = reading.tool_call_id or outcome.call_id
    reading.tool_name = reading.tool_name or outcome.name
    if outcome.failed:
        text = outcome.result.value if outcome.result else None
        reading.error = str(text or "tool error")[:MAX_ERROR]


def run_kind(parentless: bool) -> Kind:
    """A chain, a task or a plain function is the run itself when nothing is above it, else one of its steps."""
    return Kind.WORKFLOW if parentless else Kind.STEP
