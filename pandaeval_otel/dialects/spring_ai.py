"""Reads Spring AI: ``spring.ai.*`` observations.

Model calls follow the conventions; other spans have the operation ``framework``.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    as_list,
    hidden,
    keys,
    kinds,
    one_message,
    one_session,
    parsed,
    session_id,
    tool_arguments,
    tool_definitions,
)
from pandaeval_otel.model import Kind, Text

_KINDS = kinds(
    agent="chat_client", llm="chat_model", tool="tool_call", retrieval="vector_store", embedding="embedding_model"
)
_INPUT = ("spring.ai.chat.client.input", "spring.ai.chat.client.user.text", semconv.PROMPT_OLD)
_TOOL_NAMES = ("spring.ai.chat.client.tool.names", "spring.ai.chat.client.tool.function.names")
_TOOL, _SCHEMA = "spring.ai.tool.definition.name", "spring.ai.tool.definition.schema"
_OUTPUT = ("spring.ai.chat.client.output", semconv.COMPLETION_OLD)
_QUERY = "query"


class SpringAI(ByKind):
    name = "spring_ai"
    priority = 70
    roots = frozenset({"spring"})
    agent_keys = keys(system="spring.ai.chat.client.system.text")
    retrieval_keys = keys(question="db.vector.query.content", documents="db.vector.query.response.documents")
    tool_keys = keys(tool_name=_TOOL, tool_call_id="spring.ai.tool.call.id", outcome="spring.ai.tool.call.result")

    def kind_of(self) -> Kind | None:
        word = self.get("spring.ai.kind")
        if word is None:
            if _TOOL in self.attributes:
                return Kind.TOOL
            return None
        kind = _KINDS.get(str(word), Kind.STEP)
        stores = kind is Kind.RETRIEVAL and self.get("db.operation.name", _QUERY) != _QUERY
        if stores:
            return Kind.STEP
        return kind

    def read_agent(self) -> None:
        conversation = session_id(self.get("spring.ai.chat.client.conversation.id"))
        if conversation != "default":
            self.session_ids = one_session(conversation)
        self.input = _texts(self.first(*_INPUT), "user")
        self.output = _texts(self.first(*_OUTPUT), "assistant")
        names = parsed(self.first(*_TOOL_NAMES))
        self.tools = tool_definitions(names.split(",") if type(names) is str else names)

    def read_tool(self) -> None:
        schema = self.get(_SCHEMA)
        self.arguments = tool_arguments(self.get("spring.ai.tool.call.arguments"), schema)
        if _SCHEMA in self.attributes:
            description = self.get("spring.ai.tool.definition.description")
            tool = {"name": self.tool_name, "description": description, "parameters": schema}
            self.tools = tool_definitions([tool])


DIALECT = SpringAI


def _texts(value: Any, role: str) -> Messages | None:
    parts = [Text(text) for text in as_list(value) if type(text) is str and not hidden(text)]
    return one_message(role, *parts[-1:])
