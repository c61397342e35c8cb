"""Spring AI's observations."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, ToolDefinition
from tests.unit.dialects.composed import ASK, SAID, SCHEMA, event, seen, texts

FRAMEWORK = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai"}
CLIENT = {**FRAMEWORK, "spring.ai.kind": "chat_client"}
TOOL = {**FRAMEWORK, "spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "get_weather"}


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"spring.ai.kind": "chat_client"}, Kind.AGENT),
        ({"spring.ai.kind": "tool_call"}, Kind.TOOL),
        ({"spring.ai.kind": "advisor"}, Kind.STEP),
        ({"spring.ai.kind": "vector_store"}, Kind.RETRIEVAL),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "query"}, Kind.RETRIEVAL),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "add"}, Kind.STEP),
        ({"spring.ai.tool.definition.name": "t"}, Kind.TOOL),
        ({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, Kind.LLM),
    ],
)
def test_spring_kind_and_operation_set_the_kind(attributes: dict[str, Any], kind: Kind) -> None:
    assert seen({**FRAMEWORK, **attributes}).kind is kind


def test_content_of_a_model_call_is_read_from_span_events() -> None:
    events = (
        event("gen_ai.content.prompt", **{"gen_ai.prompt": '["Weather in Oslo?"]'}),
        event("gen_ai.content.completion", **{"gen_ai.completion": f'["{SAID}"]'}),
    )
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}, events=events)
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


def test_a_chat_client() -> None:
    attributes = {
        **CLIENT,
        "spring.ai.chat.client.system.text": "Be brief.",
        "spring.ai.chat.client.user.text": "Weather in Oslo?",
        "spring.ai.chat.client.output": f'["{SAID}"]',
        "spring.ai.chat.client.tool.names": '["get_weather", "get_time"]',
        "spring.ai.chat.client.conversation.id": "chat-1",
    }
    span = seen(attributes)
    assert (span.system, span.input, texts(span.output)) == ("Be brief.", (ASK,), [("assistant", SAID)])
    assert span.tools == (ToolDefinition("get_weather"), ToolDefinition("get_time"))
    assert [name for _, name in span.session_ids] == ["chat-1"]


def test_the_default_conversation_id_is_no_session() -> None:
    assert not seen({**CLIENT, "spring.ai.chat.client.conversation.id": "default"}).session_ids


def test_the_last_of_several_input_texts_is_the_question() -> None:
    span = seen({**CLIENT, "spring.ai.chat.client.input": '["Be brief.", "Weather in Oslo?"]'})
    assert span.input == (ASK,)


def test_a_tool() -> None:
    attributes = {
        **TOOL,
        "spring.ai.tool.call.id": "c9",
        "spring.ai.tool.definition.description": "Looks out.",
        "spring.ai.tool.definition.schema": '{"type": "object", "properties": {"city": {"type": "string"}}}',
        "spring.ai.tool.call.arguments": '{"city": "Oslo"}',
        "spring.ai.tool.call.result": '{"temp_c": 4}',
    }
    span = seen(attributes)
    assert (span.tool_name, span.tool_call_id) == ("get_weather", "c9")
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    assert span.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)


def test_a_vector_store_query() -> None:
    attributes = {
        **FRAMEWORK,
        "spring.ai.kind": "vector_store",
        "db.operation.name": "query",
        "db.vector.query.content": "Weather in Oslo?",
        "db.vector.query.response.documents": '["Oslo is wet.", "Oslo is cold."]',
    }
    span = seen(attributes)
    assert (span.input, span.documents) == ((ASK,), ("Oslo is wet.", "Oslo is cold."))
