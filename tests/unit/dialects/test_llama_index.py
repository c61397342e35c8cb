"""LlamaIndex's own spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Usage
from tests.unit.dialects.composed import ASK, CALL, SAID, event, seen, texts

SCOPE = "llamaindex.opentelemetry.tracer"
ASKED = [{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Weather in Oslo?"}]}]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("FunctionAgent.run", Kind.AGENT),
        ("TripFlow.run", Kind.WORKFLOW),
        ("FunctionAgent.call_tool", Kind.TOOL),
        ("FunctionAgent.run_agent_step", Kind.STEP),
    ],
)
def test_method_names_set_kinds(name: str, kind: Kind) -> None:
    assert seen({}, SCOPE, name=name).kind is kind


def test_a_model_call_is_read_from_its_events() -> None:
    call = {
        "block_type": "tool_call",
        "tool_call_id": "c9",
        "tool_name": "get_weather",
        "tool_kwargs": {"city": "Oslo"},
    }
    events = (
        event("LLMChatStartEvent", **{"messages": json.dumps(ASKED), "model_dict.model": "gpt-x"}),
        event(
            "LLMChatEndEvent",
            **{
                "messages": json.dumps(ASKED),
                "response.message.role": "assistant",
                "response.message.blocks": json.dumps([call]),
                "response.raw.id": "r-1",
                "response.raw.model": "gpt-x-09",
                "response.raw.usage.prompt_tokens": 12,
                "response.raw.usage.completion_tokens": 3,
            },
        ),
    )
    span = seen({}, SCOPE, events, name="OpenAI.achat")
    assert (span.kind, span.input) == (Kind.LLM, (ASK,))
    assert span.output == (Message("assistant", (CALL,)),)
    assert (span.request_model, span.response_model, span.response_id) == ("gpt-x", "gpt-x-09", "r-1")
    assert span.usage == Usage(input=12, output=3)


def test_tool_calls_are_read_from_additional_kwargs() -> None:
    beside = [{"id": "c9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}]
    told: dict[str, Any] = {
        "response.message.role": "assistant",
        "response.message.blocks": "[]",
        "response.message.additional_kwargs.tool_calls": json.dumps(beside),
    }
    span = seen({}, SCOPE, (event("LLMChatEndEvent", **told),), name="OpenAI.achat")
    assert span.output is not None
    assert span.output[0].tool_requests == (CALL,)


def test_a_completion() -> None:
    events = (
        event("LLMCompletionStartEvent", prompt="Weather in Oslo?"),
        event("LLMCompletionEndEvent", **{"prompt": "Weather in Oslo?", "response.text": SAID}),
    )
    span = seen({}, SCOPE, events, name="OpenAI.complete")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


def test_a_tool_call_is_read_from_the_step_summary() -> None:
    summary = "ToolCall(tool_name='get_weather', tool_kwargs={'city': 'Oslo'}, tool_id='c9')"
    span = seen({"llamaindex.step.input_summary": summary}, SCOPE, name="FunctionAgent.call_tool")
    assert (span.tool_name, span.tool_call_id) == ("get_weather", "c9")
    assert span.arguments == Captured({"city": "Oslo"})


def test_only_the_tool_name_is_read_from_a_truncated_step_summary() -> None:
    summary = "ToolCall(tool_name='get_weather', tool_kwargs={'city': 'Os"
    span = seen({"llamaindex.step.input_summary": summary}, SCOPE, name="FunctionAgent.call_tool")
    assert (span.tool_name, span.arguments) == ("get_weather", None)


def test_retrieval() -> None:
    nodes = [{"text": "Oslo is wet."}]
    events = (event("RetrievalEndEvent", str_or_query_bundle="Weather in Oslo?", nodes=json.dumps(nodes)),)
    span = seen({}, SCOPE, events, name="VectorIndexRetriever.retrieve")
    assert (span.kind, span.input, len(span.documents)) == (Kind.RETRIEVAL, (ASK,), 1)


def test_a_query_is_a_workflow_if_it_has_no_parent() -> None:
    events = (
        event("QueryStartEvent", query="Weather in Oslo?"),
        event("QueryEndEvent", **{"query": "Weather in Oslo?", "response.response": SAID}),
    )
    span = seen({}, SCOPE, events, name="RetrieverQueryEngine.query")
    assert (span.kind, span.input, texts(span.output)) == (Kind.WORKFLOW, (ASK,), [("assistant", SAID)])
    assert seen({}, SCOPE, events, name="RetrieverQueryEngine.query", parent_id="d" * 16).kind is Kind.STEP
