"""Reads Spring AI: ``spring.ai.*`` observations. Model calls follow the conventions, with content in span events or in
the attributes that the events had; all other spans have the operation ``framework``."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import give_outcome, one_session, said_by_user, session_id, tool_definitions
from pandaeval_otel.dialects._messages import Messages, system_text
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, first, hidden, identifier, parsed
from pandaeval_otel.model import Kind, Message, Part, Text
from pandaeval_otel.model.raw import RawSpan

_KINDS = {
    "chat_client": Kind.AGENT,
    "chat_model": Kind.LLM,
    "tool_call": Kind.TOOL,
    "vector_store": Kind.RETRIEVAL,
    "embedding_model": Kind.EMBEDDING,
}
_INPUT = ("spring.ai.chat.client.input", "spring.ai.chat.client.user.text", semconv.PROMPT_OLD)
_TOOL_NAMES = ("spring.ai.chat.client.tool.names", "spring.ai.chat.client.tool.function.names")
_TOOL, _SCHEMA = "spring.ai.tool.definition.name", "spring.ai.tool.definition.schema"
_RESULT = "spring.ai.tool.call.result"
_QUERY = "query"


class SpringAI(ByKind):
    """Reads ``spring.ai.*``."""

    name = "spring_ai"
    priority = 70
    roots = frozenset({"spring"})

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word = attributes.get("spring.ai.kind")
        if word is None:
            return Kind.TOOL if _TOOL in attributes else None
        kind = _KINDS.get(str(word), Kind.STEP)
        stores = kind is Kind.RETRIEVAL and attributes.get("db.operation.name", _QUERY) != _QUERY
        return Kind.STEP if stores else kind

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.input = said_by_user(attributes.get("db.vector.query.content"))
        reading.documents = tuple(as_list(attributes.get("db.vector.query.response.documents")))

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        conversation = session_id(attributes.get("spring.ai.chat.client.conversation.id"))
        reading.session_ids = one_session(conversation) if conversation != "default" else ()
        reading.input = _texts(first(attributes, _INPUT), "user")
        reading.output = _texts(
            first(attributes, ("spring.ai.chat.client.output", semconv.COMPLETION_OLD)), "assistant"
        )
        reading.system = system_text(attributes.get("spring.ai.chat.client.system.text"))
        names = parsed(first(attributes, _TOOL_NAMES))
        reading.tools = tool_definitions(names.split(",") if type(names) is str else names)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get(_TOOL))
        reading.tool_call_id = identifier(attributes.get("spring.ai.tool.call.id"))
        reading.arguments = tool_arguments(attributes.get("spring.ai.tool.call.arguments"), attributes.get(_SCHEMA))
        if _SCHEMA in attributes:
            described = {
                "name": reading.tool_name,
                "description": attributes.get("spring.ai.tool.definition.description"),
            }
            reading.tools = tool_definitions([{**described, "parameters": attributes[_SCHEMA]}])
        if not hidden(attributes.get(_RESULT)):
            give_outcome(reading, tool_outcome(attributes[_RESULT]))


DIALECT = SpringAI()


def _texts(value: Any, role: str) -> Messages | None:
    """Returns a message with the text, or with the last of several in one (``["…", "…"]``); ``None`` for none."""
    parts: list[Part] = [Text(text) for text in as_list(value) if type(text) is str and not hidden(text)]
    return (Message(role, (parts[-1],)),) if parts else None
