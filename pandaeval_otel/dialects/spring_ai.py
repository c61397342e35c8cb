"""Reads Spring AI: ``spring.ai.*`` observations. Model calls follow the conventions, with content in span events or in
the attributes that the events had; all other spans have the operation ``framework``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import give_outcome, one_session, said_by_user, session_id, tool_definitions
from pandaeval_otel.dialects._messages import Messages
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, first, hidden, identifier, parsed
from pandaeval_otel.model import Kind, Message, Part, Text
from pandaeval_otel.model.raw import RawLog, RawSpan

_KIND = "spring.ai.kind"
_KINDS = {
    "chat_client": Kind.AGENT,
    "chat_model": Kind.LLM,
    "tool_call": Kind.TOOL,
    "vector_store": Kind.RETRIEVAL,
    "embedding_model": Kind.EMBEDDING,
}
_CONVERSATION, _NO_CONVERSATION = "spring.ai.chat.client.conversation.id", "default"
_SYSTEM, _QUESTION = "spring.ai.chat.client.system.text", "spring.ai.chat.client.user.text"
_INPUT, _OUTPUT = (
    ("spring.ai.chat.client.input", _QUESTION, semconv.PROMPT_OLD),
    ("spring.ai.chat.client.output", semconv.COMPLETION_OLD),
)
_TOOL_NAMES = ("spring.ai.chat.client.tool.names", "spring.ai.chat.client.tool.function.names")
_TOOL, _SCHEMA = "spring.ai.tool.definition.name", "spring.ai.tool.definition.schema"
_DESCRIPTION = "spring.ai.tool.definition.description"
_CALL_ID, _ARGUMENTS, _RESULT = (
    "spring.ai.tool.call.id",
    "spring.ai.tool.call.arguments",
    "spring.ai.tool.call.result",
)
_STORE_OPERATION, _QUERY = "db.operation.name", "query"
_STORE_QUERY, _STORE_RESULT = "db.vector.query.content", "db.vector.query.response.documents"


class SpringAI(Dialect):
    """Reads ``spring.ai.*``."""

    name = "spring_ai"
    priority = 70
    roots = frozenset({"spring"})

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        kind = _kind(attributes)
        if kind is None:
            return None
        reading = Reading(kind=kind)
        if kind is Kind.AGENT:
            _read_client(reading, attributes)
        elif kind is Kind.TOOL:
            _read_tool(reading, attributes)
        elif kind is Kind.RETRIEVAL:
            query = attributes.get(_STORE_QUERY)
            reading.input = said_by_user(query) if type(query) is str and not hidden(query) else None
            reading.documents = tuple(as_list(attributes.get(_STORE_RESULT)))
        return reading


DIALECT = SpringAI()


def _kind(attributes: Mapping[str, Any]) -> Kind | None:
    word = attributes.get(_KIND)
    if word is None:
        return Kind.TOOL if _TOOL in attributes else None
    kind = _KINDS.get(str(word), Kind.STEP)
    stores = kind is Kind.RETRIEVAL and attributes.get(_STORE_OPERATION, _QUERY) != _QUERY
    return Kind.STEP if stores else kind


def _read_client(reading: Reading, attributes: Mapping[str, Any]) -> None:
    conversation = session_id(attributes.get(_CONVERSATION))
    reading.session_ids = one_session(conversation) if conversation != _NO_CONVERSATION else ()
    reading.input = _texts(first(attributes, _INPUT), "user")
    reading.output = _texts(first(attributes, _OUTPUT), "assistant")
    system = attributes.get(_SYSTEM)
    reading.system = system if type(system) is str and system and not hidden(system) else None
    names = parsed(first(attributes, _TOOL_NAMES))
    reading.tools = tool_definitions(names.split(",") if type(names) is str else names)


def _texts(value: Any, role: str) -> Messages | None:
    """Returns a message with the text, or with the last of several in one (``["…", "…"]``); ``None`` for none."""
    parts: list[Part] = [Text(text) for text in as_list(value) if type(text) is str and not hidden(text)]
    return (Message(role, (parts[-1],)),) if parts else None


def _read_tool(reading: Reading, attributes: Mapping[str, Any]) -> None:
    reading.tool_name = identifier(attributes.get(_TOOL))
    reading.tool_call_id = identifier(attributes.get(_CALL_ID))
    reading.arguments = tool_arguments(attributes.get(_ARGUMENTS), attributes.get(_SCHEMA))
    if _SCHEMA in attributes:
        described = {"name": reading.tool_name, "description": attributes.get(_DESCRIPTION)}
        reading.tools = tool_definitions([{**described, "parameters": attributes[_SCHEMA]}])
    if not hidden(attributes.get(_RESULT)):
        give_outcome(reading, tool_outcome(attributes[_RESULT]))
