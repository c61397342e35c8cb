"""MLflow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.mlflow import DIALECT
from pandaeval_otel.model import Captured, Kind, Message, Reasoning, Text, ToolDefinition, ToolRequest, Usage
from pandaeval_otel.model.raw import RawSpan
from tests.unit.dialects.composed import seen

ASK = Message("user", (Text("Weather in Oslo?"),))
ANSWER = Message("assistant", (Text("4 degrees."),))


def read(attributes: dict[str, Any], **fields: Any) -> Reading:
    encoded = {f"mlflow.{key}": json.dumps(value) for key, value in attributes.items()}
    found = DIALECT.read(RawSpan("t" * 32, "s" * 16, attributes=encoded, **fields), ())
    assert found is not None
    return found


def test_a_model_call() -> None:
    request = {
        "model": "gpt-x",
        "messages": [{"role": "user", "content": "Weather in Oslo?"}],
        "tools": [{"name": "f"}],
    }
    found = read(
        {
            "spanType": "CHAT_MODEL",
            "spanInputs": request,
            "spanOutputs": {"choices": [{"message": {"role": "assistant", "content": "4 degrees."}}]},
            "chat.tokenUsage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
        }
    )
    assert (found.kind, found.input, found.output) == (Kind.LLM, (ASK,), (ANSWER,))
    assert found.tools == (ToolDefinition("f"),)
    assert (found.request_model, found.usage) == ("gpt-x", Usage(7, 2))


def test_a_model_call_of_dspy() -> None:
    said = (
        '[[ ## next_thought ## ]]\nLook.\n\n[[ ## next_tool_name ## ]]\nf\n\n[[ ## next_tool_args ## ]]\n{"a": 1}\n\n'
    )
    found = read({"spanType": "LLM", "spanInputs": {"prompt": "Weather in Oslo?"}, "spanOutputs": [said]})
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Reasoning("Look."), ToolRequest("f", {"a": 1}))),)


@pytest.mark.parametrize(
    ("stated", "parent", "kind"),
    [
        ("LLM", "p", Kind.LLM),
        ("AGENT", "p", Kind.AGENT),
        ("TOOL", "p", Kind.TOOL),
        ("RETRIEVER", "p", Kind.RETRIEVAL),
        ("EVALUATOR", "", Kind.EVALUATION),
        ("PARSER", "p", Kind.STEP),
        ("CHAIN", "p", Kind.STEP),
        ("CHAIN", "", Kind.WORKFLOW),
        ("UNKNOWN", "", Kind.WORKFLOW),
        ("anything", "p", Kind.STEP),
    ],
)
def test_span_type_and_parent_set_the_kind(stated: str, parent: str, kind: Kind) -> None:
    assert read({"spanType": stated}, parent_id=parent).kind is kind


def test_a_run() -> None:
    found = read(
        {
            "spanType": "AGENT",
            "spanInputs": {"query": "Weather in Oslo?", "top_k": 3},
            "spanOutputs": "4 degrees.",
            "trace.session": "s-7",
            "trace.user": "u-1",
        },
        name="desk",
    )
    assert (found.input, found.output, found.agent_name) == ((ASK,), (ANSWER,), "desk")
    assert (found.session_ids, found.user_id) == (((4, "s-7"),), "u-1")


def test_a_tool_keeps_its_name_when_spans_are_numbered() -> None:
    attributes = {"spanType": "TOOL", "spanInputs": {"city": "Oslo"}, "spanOutputs": {"temp_c": 4}}
    found = read({**attributes, "spanFunctionName": "get_weather"}, name="get_weather_2")
    assert found.tool_name == "get_weather"
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    assert read(attributes, name="report_2").tool_name == "report_2"


def test_spans_translated_to_genai_attributes_are_not_read_by_mlflow() -> None:
    translated = {"gen_ai.operation.name": "chat", "mlflow.traceRequestId": '"tr-1"'}
    assert DIALECT.read(RawSpan("t" * 32, "s" * 16, attributes=translated), ()) is None


def test_agent_and_session_are_read_from_langchain_metadata() -> None:
    metadata = '{"lc_agent_name": "desk", "thread_id": "talk-1"}'
    found = seen({"mlflow.spanType": '"CHAIN"', "metadata": metadata})
    assert (found.agent_name, found.session_ids) == ("desk", ((4, "talk-1"),))


def test_a_method_name_is_no_agent_name() -> None:
    assert seen({"mlflow.spanType": '"AGENT"'}, name="AgentRunner.run").agent_name == ""


def test_genai_tool_and_agent_names_are_kept_on_mlflow_spans() -> None:
    tool = {"mlflow.spanType": '"TOOL"', "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    assert seen(tool, name="execute_tool look").tool_name == "look"
    agent = {"mlflow.spanType": '"AGENT"', "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    assert seen(agent, name="invoke_agent desk").agent_name == "desk"


def test_pydantic_ai_run_and_tools_are_read() -> None:
    asked = {"user_prompt": "And in Bergen?", "message_history": [{"parts": [{"content": "Oslo?"}], "state": "done"}]}
    run = {"mlflow.spanType": '"AGENT"', "name": '"desk"', "mlflow.spanInputs": json.dumps(asked)}
    found = seen({**run, "mlflow.spanOutputs": '{"output": "Rain.\\n"}'}, name="Agent.run")
    assert found.agent_name == "desk"
    assert [message.text for message in (*(found.input or ()), *(found.output or ()))] == ["And in Bergen?", "Rain."]
    request = {"model_request_parameters": {"function_tools": [{"name": "look", "parameters_json_schema": {}}]}}
    found = seen({"mlflow.spanType": '"LLM"', "mlflow.spanInputs": json.dumps(request)})
    assert [tool.name for tool in found.tools or ()] == ["look"]
