"""VoltAgent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Span, ToolDefinition, Usage
from tests.unit.dialects import composed
from tests.unit.dialects.composed import ASK, BRIEF, SAID, texts

AGENT = {"entity.type": "agent", "entity.name": "trip_bot", "entity.id": "a-1"}


def seen(attributes: dict[str, Any]) -> Span:
    return composed.seen(attributes, "@voltagent/core")


def test_a_generate_text_span_with_tools_has_no_usage_of_its_own() -> None:
    usage = {"llm.usage.prompt_tokens": 12, "llm.usage.completion_tokens": 3}
    model = {**AGENT, "span.type": "llm", "llm.operation": "generateText", **usage}
    assert seen(model).usage == Usage(input=12, output=3)
    assert seen({**model, "llm.tools": "get_weather"}).usage is None
    assert seen({**model, "llm.tools": "get_weather", "llm.operation": "generateObject"}).usage == Usage(12, 3)
    assert seen({**model, "llm.tools": "get_weather", "llm.operation": ["generateText"]}).usage == Usage(12, 3)


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"entity.type": "agent"}, Kind.AGENT),
        ({"entity.type": "agent", "span.type": "llm"}, Kind.LLM),
        ({"entity.type": "agent", "span.type": "tool"}, Kind.TOOL),
        ({"entity.type": "agent", "span.type": "retriever"}, Kind.RETRIEVAL),
        ({"entity.type": "agent", "span.type": "memory"}, Kind.STEP),
        ({"entity.type": "workflow"}, Kind.WORKFLOW),
    ],
)
def test_the_span_type_wins_over_the_entity_type(attributes: dict[str, Any], kind: Kind) -> None:
    assert seen(attributes).kind is kind


def test_an_agent() -> None:
    attributes = {
        **AGENT,
        "voltagent.conversation_id": "chat-1",
        "input": "Weather in Oslo?",
        "output": SAID,
        "agent.instructions": "Be brief.",
        "ai.model.name": "gpt-x",
        "usage.prompt_tokens": 30,
        "usage.completion_tokens": 9,
        "usage.cached_tokens": 5,
    }
    span = seen(attributes)
    assert (span.agent_name, span.system, span.request_model) == ("trip_bot", "Be brief.", "gpt-x")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])
    assert [name for _, name in span.session_ids] == ["chat-1"]
    assert span.usage == Usage(input=30, output=9, cache_read=5)


def test_a_subagent_has_its_own_name() -> None:
    assert seen({**AGENT, "subagent.name": "clerk"}).agent_name == "clerk"


def test_a_model_call() -> None:
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Oslo?"}]
    attributes = {
        **AGENT,
        "span.type": "llm",
        "llm.model": "gpt-x",
        "llm.messages": json.dumps(said),
        "llm.tools": "get_weather,get_time",
        "llm.usage.prompt_tokens": 12,
        "llm.usage.completion_tokens": 3,
        "llm.usage.reasoning_tokens": 2,
        "output": SAID,
    }
    span = seen(attributes)
    assert (span.input, span.system) == ((BRIEF, ASK), "Be brief.")
    assert texts(span.output) == [("assistant", SAID)]
    assert span.tools == (ToolDefinition("get_weather"), ToolDefinition("get_time"))
    assert span.usage == Usage(input=12, output=3, reasoning=2)


def test_a_tool() -> None:
    attributes = {
        **AGENT,
        "span.type": "tool",
        "tool.name": "get_weather",
        "tool.call.id": "c9",
        "input": '{"city": "Oslo"}',
        "output": '{"temp_c": 4}',
    }
    span = seen(attributes)
    assert (span.tool_name, span.tool_call_id) == ("get_weather", "c9")
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_types_in_other_scopes_are_not_read() -> None:
    assert "voltagent" not in composed.seen({**AGENT, "span.type": "llm"}).dialects


def test_tool_schemas_are_read_from_the_agent_state() -> None:
    shape = {"city": {"def": {"type": "string"}, "type": "string"}, "days": {"type": "optional"}}
    tools = [
        {"name": "look", "description": "Looks.", "parameters": {"def": {"type": "object", "shape": shape}}},
        {"name": "book", "description": "Books.", "parameters": {"type": "object", "properties": {"id": {}}}},
    ]
    found = seen({"entity.type": "agent", "agent.stateSnapshot": json.dumps({"tools": tools})})
    look, book = found.tools or ()
    assert (look.name, look.description) == ("look", "Looks.")
    assert look.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {}},
        "required": ["city"],
    }
    assert book.parameters == {"type": "object", "properties": {"id": {}}}
