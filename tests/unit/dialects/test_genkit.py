"""Genkit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Media, Message, Reasoning, Text, Usage
from pandaeval_otel.model.raw import STATUS_ERROR
from tests.unit.dialects.composed import ANSWER, ASK, BRIEF, CALL, FOUND, SAID, SCHEMA, seen, texts

SCOPE = "genkit-tracer"
PARENT = "d" * 16
SYSTEM = {"role": "system", "content": [{"text": "Be brief."}]}
USER = {"role": "user", "content": [{"text": "Weather in Oslo?"}]}
REQUEST = {
    "role": "model",
    "content": [{"toolRequest": {"name": "get_weather", "ref": "c9", "input": {"city": "Oslo"}}}],
}
RESPONSE = {
    "role": "tool",
    "content": [{"toolResponse": {"name": "get_weather", "ref": "c9", "output": {"temp_c": 4}}}],
}


def action(subtype: str, name: str = "x", given: Any = None, made: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "genkit:type": "action",
        "genkit:metadata:subtype": subtype,
        "genkit:name": name,
        "genkit:input": json.dumps(given),
        "genkit:output": json.dumps(made),
        "genkit:state": "success",
        **more,
    }


@pytest.mark.parametrize(
    ("subtype", "kind"),
    [
        ("flow", Kind.WORKFLOW),
        ("model", Kind.LLM),
        ("tool", Kind.TOOL),
        ("tool.v2", Kind.TOOL),
        ("retriever", Kind.RETRIEVAL),
        ("embedder", Kind.EMBEDDING),
        ("evaluator", Kind.EVALUATION),
        ("indexer", Kind.STEP),
    ],
)
def test_action_subtypes_set_kinds(subtype: str, kind: Kind) -> None:
    assert seen(action(subtype), SCOPE, parent_id=PARENT).kind is kind


def test_a_flow_step_without_a_subtype_is_a_step() -> None:
    assert seen({"genkit:type": "flowStep", "genkit:name": "s"}, SCOPE).kind is Kind.STEP


def test_generate_is_a_workflow_if_it_has_no_parent() -> None:
    made = {"message": {"role": "model", "content": [{"text": SAID}]}, "request": {"messages": [SYSTEM, USER]}}
    attributes = {
        "genkit:type": "util",
        "genkit:name": "generate",
        "genkit:input": json.dumps({"model": "local/gpt-x", "messages": [SYSTEM, USER]}),
        "genkit:output": json.dumps(made),
    }
    span = seen(attributes, SCOPE)
    assert (span.kind, span.input, span.output) == (Kind.WORKFLOW, (BRIEF, ASK), (ANSWER,))
    assert span.agent_name == ""
    assert seen(attributes, SCOPE, parent_id=PARENT).kind is Kind.STEP


def test_a_flow() -> None:
    span = seen(action("flow", "trip_bot", "Weather in Oslo?", SAID, **{"genkit:sessionId": "chat-1"}), SCOPE)
    assert (span.agent_name, span.input, texts(span.output)) == ("trip_bot", (ASK,), [("assistant", SAID)])
    assert span.session_ids == ((4, "chat-1"),)


def test_a_model_call() -> None:
    tools = [{"name": "get_weather", "description": "Tells.", "inputSchema": SCHEMA, "key": "/tool/get_weather"}]
    given = {"messages": [SYSTEM, USER, REQUEST, RESPONSE], "tools": tools, "config": {}}
    made = {
        "message": {"role": "model", "content": [{"reasoning": "look out"}, {"text": SAID}]},
        "finishReason": "stop",
        "usage": {"inputTokens": 12, "outputTokens": 3, "totalTokens": 15, "cachedContentTokens": 5},
        "raw": {"id": "r-1", "model": "gpt-x-09"},
    }
    span = seen(action("model", "openai/gpt-x", given, made), SCOPE)
    assert span.input == (BRIEF, ASK, Message("assistant", (CALL,)), Message("tool", (FOUND,)))
    assert span.output == (Message("assistant", (Reasoning("look out"), Text(SAID)), "stop"),)
    assert (span.request_model, span.response_model, span.response_id) == ("gpt-x", "gpt-x-09", "r-1")
    assert (span.system, span.usage) == ("Be brief.", Usage(input=12, output=3, cache_read=5))
    assert span.tools is not None
    assert (span.tools[0].name, span.tools[0].parameters) == ("get_weather", SCHEMA)


def test_reasoning_is_read_from_the_raw_response() -> None:
    told = {"role": "assistant", "content": None, "reasoning_content": "look out"}
    made = {"message": REQUEST, "raw": {"choices": [{"message": told}]}}
    assert seen(action("model", "m", {}, made), SCOPE).output == (Message("assistant", (Reasoning("look out"), CALL)),)


def test_candidates_of_older_releases_are_read() -> None:
    made = {"candidates": [{"index": 0, "message": {"role": "model", "content": [{"text": SAID}]}}]}
    assert seen(action("model", "m", {}, made), SCOPE).output == (ANSWER,)


def test_thought_tokens_are_added_to_the_output_tokens() -> None:
    made = {"usage": {"inputTokens": 10, "outputTokens": 4, "thoughtsTokens": 6, "totalTokens": 20}}
    assert seen(action("model", "m", {}, made), SCOPE).usage == Usage(input=10, output=10, reasoning=6)


def test_media() -> None:
    parts = [{"media": {"url": "https://x.test/a.png", "contentType": "image/png"}}]
    span = seen(action("model", "m", {"messages": [{"role": "user", "content": parts}]}), SCOPE)
    assert span.input == (Message("user", (Media("image", "https://x.test/a.png", "image/png"),)),)


def test_a_tool() -> None:
    span = seen(action("tool", "get_weather", {"city": "Oslo"}, {"temp_c": 4}), SCOPE)
    assert (span.tool_name, span.arguments, span.result) == (
        "get_weather",
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
    )


def test_a_failed_tool_has_an_error_and_no_result() -> None:
    attributes = {
        "genkit:type": "action",
        "genkit:metadata:subtype": "tool",
        "genkit:name": "t",
        "genkit:state": "error",
    }
    span = seen(attributes, SCOPE, status_code=STATUS_ERROR, status_message="no wind")
    assert (span.result, span.error) == (None, "no wind")
    assert seen(attributes, SCOPE).error == "error"


def test_a_retriever() -> None:
    documents = [{"content": [{"text": "Oslo is wet."}]}]
    given = {"query": {"content": [{"text": "Weather in Oslo?"}]}, "options": {}}
    span = seen(action("retriever", "notes", given, {"documents": documents}), SCOPE)
    assert (texts(span.input), len(span.documents)) == ([("user", "Weather in Oslo?")], 1)
