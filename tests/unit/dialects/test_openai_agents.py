"""openai-agents-v2."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Kind, Message, Reasoning, Text
from pandaeval_otel.model.raw import STATUS_ERROR, STATUS_OK
from tests.unit.dialects.composed import ASK, CALL, SAID, seen

SCOPE = "opentelemetry.instrumentation.openai_agents"
MADE_UP = {"gen_ai.agent.name": "OpenAI Agent", "gen_ai.agent.id": "agent"}


def said(role: str, *contents: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content} for content in contents]}])


def test_the_run_is_a_workflow_and_its_turns_are_steps() -> None:
    run = seen({"gen_ai.operation.name": "invoke_agent"}, SCOPE, name="Agent workflow", status_code=STATUS_OK)
    turn = seen({"gen_ai.operation.name": "unknown", **MADE_UP}, SCOPE, name="unknown")
    agent = seen(
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "trip_bot"}, SCOPE, name="invoke_agent trip_bot"
    )
    assert (run.kind, turn.kind, agent.kind) == (Kind.WORKFLOW, Kind.STEP, Kind.AGENT)
    assert (run.agent_name, turn.agent_name, agent.agent_name) == ("", "", "trip_bot")


def test_reprs_of_sdk_objects_in_text_are_read_as_parts() -> None:
    made = said(
        "assistant",
        "ResponseReasoningItem(id='rs_1', summary=[Summary(text='look out', type='summary_text')], type='reasoning')",
        "ResponseFunctionToolCall(arguments='{\"city\": \"Oslo\"}', call_id='c9', "
        "name='get_weather', type='function_call')",
    )
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.output.messages": made}, SCOPE)
    assert span.output == (Message("assistant", (Reasoning("look out"), CALL)),)


def test_reprs_of_dictionaries_in_text_are_read_as_parts() -> None:
    block = "{'annotations': [], 'text': 'Weather in Oslo?', 'type': 'output_text', 'logprobs': []}"
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.input.messages": said("user", block)}, SCOPE)
    assert span.input == (ASK,)


def test_text_that_only_looks_like_a_repr_stays_text() -> None:
    text = "Response(s) will follow"
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.output.messages": said("assistant", text)}, SCOPE)
    assert span.output == (Message("assistant", (Text(text),)),)


def agent(**fields: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "trip_bot",
        "gen_ai.output.messages": said("assistant", SAID),
        **fields,
    }


def test_the_last_message_of_a_failed_agent_is_no_answer() -> None:
    failed = seen(agent(), SCOPE, name="invoke_agent trip_bot", status_code=STATUS_ERROR)
    assert failed.output is not None
    assert (failed.output[0].text, failed.output[0].hidden) == ("", True)
    assert seen(agent(), SCOPE, name="invoke_agent trip_bot").output == (Message("assistant", (Text(SAID),)),)


def test_reprs_in_structured_and_json_content_are_read_alike() -> None:
    text = "ResponseReasoningItem(id='rs_1', summary=[Summary(text='look out', type='summary_text')], type='reasoning')"
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    scope = "opentelemetry.instrumentation.openai_agents"
    told = [seen({"gen_ai.output.messages": value}, scope).output for value in (messages, json.dumps(messages))]
    assert told[0] == told[1] == (Message("assistant", (Reasoning("look out"),)),)
