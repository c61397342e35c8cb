"""AutoGen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, Usage
from tests.unit.dialects.composed import ASK, CALL, FOUND, SAID, link, seen

NAME = "autogen process RoundRobinGroupChatManager_1.(1)-A"
SCOPE = "autogen SingleThreadedAgentRuntime"
START = {"messages": [{"source": "user", "content": "Weather in Oslo?", "type": "TextMessage"}]}
CHAT = {
    "source": "trip_bot",
    "content": SAID,
    "type": "TextMessage",
    "models_usage": {"prompt_tokens": 8, "completion_tokens": 3},
}
INNER = [
    {"source": "trip_bot", "content": "look out", "type": "ThoughtEvent", "models_usage": None},
    {
        "source": "trip_bot",
        "type": "ToolCallRequestEvent",
        "content": [{"id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'}],
        "models_usage": {"prompt_tokens": 4, "completion_tokens": 2},
    },
    {
        "source": "trip_bot",
        "type": "ToolCallExecutionEvent",
        "content": [{"content": '{"temp_c": 4}', "name": "get_weather", "call_id": "c9", "is_error": False}],
    },
]


def handled(message: Any, name: str = NAME, recipient: str = "RoundRobinGroupChatManager", **fields: Any) -> Span:
    attributes = {"recipient_agent_class": recipient, "message": json.dumps(message)}
    return seen(attributes, SCOPE, name=name, **{"links": (link(),), **fields})


def test_the_start_message_of_a_team_is_a_workflow_with_input() -> None:
    span = handled(START)
    assert (span.kind, span.input, span.output) == (Kind.WORKFLOW, (ASK,), None)


@pytest.mark.parametrize("key", ["response", "agent_response"])
def test_an_agent_response_includes_its_inner_messages_and_usage(key: str) -> None:
    span = handled({key: {"chat_message": CHAT, "inner_messages": INNER}})
    assert (span.kind, span.agent_name) == (Kind.AGENT, "trip_bot")
    assert span.output == (
        Message("assistant", (Reasoning("look out"),)),
        Message("assistant", (CALL,)),
        Message("tool", (FOUND,)),
        Message("assistant", (Text(SAID),)),
    )
    assert span.usage == Usage(input=12, output=5)


@pytest.mark.parametrize(
    "fields",
    [{"links": ()}, {"links": (link("f" * 32),)}, {"recipient": "ChatAgentContainer"}, {"name": "autogen publish x"}],
)
def test_spans_other_than_linked_manager_messages_are_ignored(fields: dict[str, Any]) -> None:
    assert handled(START, **fields).kind is Kind.OTHER


@pytest.mark.parametrize("message", [{}, {"message": CHAT}, [], "No Message", {"messages": []}, {"response": {}}])
def test_messages_without_start_or_response_are_ignored(message: Any) -> None:
    assert handled(message).kind is Kind.OTHER


def test_create_agent_is_a_step_and_no_run() -> None:
    attributes = {"gen_ai.system": "autogen", "gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "trip_bot"}
    assert seen(attributes, "autogen-core", name="create_agent trip_bot").kind is Kind.STEP
