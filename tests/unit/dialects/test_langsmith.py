"""LangSmith."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.langsmith import DIALECT
from pandaeval_otel.model import Captured, Kind, Message, Text, ToolRequest
from pandaeval_otel.model.raw import STATUS_OK, RawEvent, RawSpan, Scope
from pandaeval_otel.normal.spans import normalize

RUN = "langsmith.span.kind"
ASK = Message("user", (Text("Weather in Oslo?"),))


def span(attributes: dict[str, Any], **fields: Any) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes, scope=Scope("langsmith"), **fields)


def read(attributes: dict[str, Any], **fields: Any) -> Reading:
    found = DIALECT.read(span(attributes, **fields), ())
    assert found is not None
    return found


def lc(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def test_a_model_run() -> None:
    call = {"name": "get_weather", "args": {"city": "Oslo"}, "id": "c9", "type": "tool_call"}
    answer = lc("AIMessage", content="", tool_calls=[call])
    found = normalize(
        span(
            {
                RUN: "llm",
                "gen_ai.operation.name": "chat",
                "gen_ai.prompt": json.dumps({"messages": [[lc("SystemMessage", content="Brief."), ASK_LC]]}),
                "gen_ai.completion": json.dumps({"generations": [[{"text": "", "message": answer}]]}),
            }
        )
    )
    assert (found.kind, found.system) == (Kind.LLM, "Brief.")
    assert found.input == (Message("system", (Text("Brief."),)), ASK)
    assert found.output is not None
    assert found.output[0].tool_requests == (ToolRequest("get_weather", {"city": "Oslo"}, "c9"),)


ASK_LC = lc("HumanMessage", content="Weather in Oslo?")


@pytest.mark.parametrize(
    ("run_type", "parent", "kind"),
    [
        ("llm", "p", Kind.LLM),
        ("tool", "p", Kind.TOOL),
        ("retriever", "p", Kind.RETRIEVAL),
        ("embedding", "p", Kind.EMBEDDING),
        ("parser", "p", Kind.STEP),
        ("prompt", "p", Kind.STEP),
        ("chain", "p", Kind.STEP),
        ("chain", "", Kind.WORKFLOW),
    ],
)
def test_the_run_type_wins_over_the_operation_name(run_type: str, parent: str, kind: Kind) -> None:
    attributes = {RUN: run_type, "gen_ai.operation.name": "embeddings"}
    assert normalize(span(attributes, parent_id=parent)).kind is kind


def test_a_tool_run() -> None:
    message = {"content": '{"temp_c": 4}', "type": "tool", "tool_call_id": "c9", "status": "success"}
    attributes = {RUN: "tool", "langsmith.trace.name": "get_weather", "gen_ai.prompt": '{"city": "Oslo"}'}
    found = read({**attributes, "gen_ai.completion": json.dumps({"output": message})})
    assert (found.tool_name, found.tool_call_id) == ("get_weather", "c9")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    older = read(
        {**attributes, "gen_ai.prompt": "{\"input\": \"{'city': 'Oslo'}\"}", "gen_ai.completion": '{"output": 4}'}
    )
    assert (older.arguments, older.result) == (Captured({"city": "Oslo"}), Captured(4))


def test_a_run_named_after_the_agent_is_the_agent_span() -> None:
    named = {RUN: "chain", "langsmith.metadata.lc_agent_name": "desk", "langsmith.trace.name": "desk"}
    found = read(
        {**named, "gen_ai.prompt": '{"messages": [{"role": "user", "content": "Weather in Oslo?"}]}'}, parent_id="p"
    )
    assert (found.kind, found.agent_name, found.input) == (Kind.AGENT, "desk", (ASK,))
    assert read({**named, "langsmith.trace.name": "model"}, parent_id="p").kind is Kind.STEP


def test_the_project_is_no_session() -> None:
    found = read({RUN: "chain", "langsmith.trace.session_id": "p-1", "langsmith.trace.session_name": "default"})
    assert found.session_ids == ()
    prefix = "langsmith.metadata."
    found = read({RUN: "chain", f"{prefix}thread_id": "s-7", f"{prefix}user_id": "u-1"})
    assert (found.session_ids, found.user_id) == (((4, "s-7"),), "u-1")


def test_an_exception_is_an_error_even_if_the_status_is_ok() -> None:
    event = RawEvent("exception", 1, {"exception.message": "context too long"})
    assert normalize(span({RUN: "llm"}, status_code=STATUS_OK, events=(event,))).error == "context too long"


def test_documents_of_a_retriever() -> None:
    attributes = {RUN: "retriever", "gen_ai.prompt": '{"query": "oslo weather"}'}
    found = read({**attributes, "gen_ai.completion": '{"documents": [{"page_content": "It rains."}]}'})
    assert found.documents == ({"page_content": "It rains."},)
    assert found.input == (Message("user", (Text("oslo weather"),)),)
