"""Haystack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, ToolDefinition, ToolResponse, Usage
from tests.unit.dialects.composed import ASK, CALL, SAID, SCHEMA, seen, texts

USER: dict[str, Any] = {"role": "user", "meta": {}, "name": None, "content": [{"text": "Weather in Oslo?"}]}
SYSTEM = {"role": "system", "meta": {}, "content": [{"text": "Be brief."}]}
ASKED = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "id": "c9"}
REQUEST = {
    "role": "assistant",
    "meta": {
        "model": "gpt-x",
        "finish_reason": "tool_calls",
        "usage": {
            "prompt_tokens": 21,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    },
    "content": [{"tool_call": ASKED}],
}
RESULT = {
    "role": "tool",
    "content": [{"tool_call_result": {"result": '{"temp_c": 4}', "origin": ASKED, "error": False}}],
}
REPLY = {"role": "assistant", "meta": {"usage": None}, "content": [{"text": SAID}]}
TOOL = {"type": "haystack.tools.tool.Tool", "data": {"name": "get_weather", "description": "d", "parameters": SCHEMA}}


def dumped(**values: Any) -> dict[str, str]:
    return {f"haystack.{key.replace('__', '.')}": json.dumps(value) for key, value in values.items()}


def test_a_model_call_of_an_agent() -> None:
    span = seen(
        dumped(
            agent__step__llm__input={"messages": [SYSTEM, USER], "tools": [TOOL]},
            agent__step__llm__output={"replies": [REQUEST]},
        ),
        name="haystack.agent.step.llm",
    )
    assert (span.kind, span.response_model, span.system) == (Kind.LLM, "gpt-x", "Be brief.")
    assert span.input is not None
    assert span.input[-1] == ASK
    assert span.output is not None
    assert span.output[0].tool_requests == (CALL,)
    assert span.tools == (ToolDefinition("get_weather", "d", SCHEMA),)
    assert span.usage == Usage(input=21, output=9, cache_read=5, reasoning=4)


def test_tool_results_have_the_id_and_name_of_their_call() -> None:
    history = {"messages": [USER, REQUEST, RESULT]}
    span = seen(dumped(agent__step__llm__input=history), name="haystack.agent.step.llm")
    assert span.input is not None
    assert span.input[2].tool_responses == (ToolResponse({"temp_c": 4}, "c9", "get_weather"),)


def test_input_output_and_tools_of_an_agent_run_are_read() -> None:
    span = seen(
        dumped(agent__input={"messages": [USER]}, agent__output={"messages": [SYSTEM, USER, REQUEST, RESULT, REPLY]})
        | dumped(agent__tools=[TOOL, {"type": "Toolset", "data": {"tools": [{"data": {"name": "inner"}}]}}]),
        name="haystack.agent.run",
    )
    assert (span.kind, span.input, span.system) == (Kind.AGENT, (ASK,), "Be brief.")
    assert texts(span.output)[-1] == ("assistant", SAID)
    assert [tool.name for tool in span.tools or ()] == ["get_weather", "inner"]


def test_a_tool_error_flag_sets_the_error() -> None:
    attributes = {
        "haystack.tool.name": "get_weather",
        "haystack.tool.error": True,
        "haystack.agent.step.tool.input": '{"city": "Oslo"}',
        "haystack.agent.step.tool.output": '{"error": "no wind"}',
    }
    span = seen(attributes, name="haystack.agent.step.tool")
    assert (span.kind, span.tool_name, span.error) == (Kind.TOOL, "get_weather", "no wind")
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"error": "no wind"}))


@pytest.mark.parametrize(
    ("component", "kind"),
    [
        ("OpenAIChatGenerator", Kind.LLM),
        ("InMemoryBM25Retriever", Kind.RETRIEVAL),
        ("SentenceTransformersTextEmbedder", Kind.EMBEDDING),
        ("PromptBuilder", Kind.STEP),
        ("ToolInvoker", Kind.STEP),
    ],
)
def test_the_component_class_sets_the_kind(component: str, kind: Kind) -> None:
    assert seen({"haystack.component.type": component}, name="haystack.component.run").kind is kind


def test_generator_prompt_replies_and_metadata_are_read() -> None:
    attributes = dumped(
        component__input={"prompt": "Weather in Oslo?"},
        component__output={"replies": [SAID], "meta": [{"model": "gpt-x", "usage": {"prompt_tokens": 2}}]},
    )
    span = seen({"haystack.component.type": "OpenAIGenerator", **attributes}, name="haystack.component.run")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])
    assert (span.response_model, span.usage) == ("gpt-x", Usage(input=2))


def test_pipeline_input_and_output_are_read_from_its_components() -> None:
    attributes = dumped(
        pipeline__input_data={"prompt": {"query": "Weather in Oslo?"}},
        pipeline__output_data={"llm": {"replies": [SAID]}},
    )
    span = seen(attributes, name="haystack.pipeline.run")
    assert (span.kind, span.input, texts(span.output)) == (Kind.WORKFLOW, (ASK,), [("assistant", SAID)])


def test_retriever_query_and_documents_are_read() -> None:
    attributes = dumped(
        component__input={"query": "Weather in Oslo?"}, component__output={"documents": [{"content": "wet"}]}
    )
    span = seen({"haystack.component.type": "XRetriever", **attributes}, name="haystack.component.run")
    assert (span.input, span.documents) == ((ASK,), ({"content": "wet"},))


def test_without_content_tracing_there_is_no_content() -> None:
    span = seen({"haystack.agent.max_steps": 5}, name="haystack.agent.run")
    assert (span.kind, span.input, span.output, span.tools) == (Kind.AGENT, None, None, None)
