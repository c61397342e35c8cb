"""Wrapped tool results: unwrapped, with their failure status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects._tool_values import may_say_failed, unwrapped
from pandaeval_otel.model import Captured, ToolCall
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.support.builders import Spans, asks, gives, user

TEXT = '{"seat": "14C"}'
BLOCK = {"type": "text", "text": TEXT}


def lc(**kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": kwargs}


WRAPPED: dict[str, Any] = {
    "LangChain, repr": f"ToolMessage(content='{TEXT}', name='book', id='x', tool_call_id='c1')",
    "LangChain, str": f"content='{TEXT}' name='book' tool_call_id='c1'",
    "LangChain, str in an output": {"output": f"content='{TEXT}' name='book' tool_call_id='c1'"},
    "LangChain, serialised": {"output": lc(content=TEXT, tool_call_id="c1", status="success")},
    "LangChain, serialised with tags": {"output": lc(content=TEXT, tool_call_id="c1"), "kwargs": {"tags": []}},
    "LangChain, members alone": {"output": {"kwargs": {"content": TEXT, "tool_call_id": "c1"}}},
    "LangChain, data": {"type": "tool", "data": {"content": TEXT, "name": "book"}},
    "LangChain, in a list": [{"type": "tool", "content": TEXT, "tool_call_id": "c1"}],
    "LangGraph, command": {"update": {"messages": [{"type": "tool", "content": TEXT, "tool_call_id": "c1"}]}},
    "LlamaIndex": {"tool_name": "book", "raw_input": {}, "raw_output": TEXT, "is_error": False, "content": TEXT},
    "LlamaIndex, blocks": {"blocks": [{"block_type": "text", "text": TEXT}], "tool_name": "book", "is_error": False},
    "LlamaIndex, event": {"tool_name": "book", "tool_id": "c", "tool_output": {"raw_output": TEXT, "is_error": False}},
    "LlamaIndex, repr": (
        f"ToolOutput(blocks=[TextBlock(block_type='text', text='{TEXT}')], tool_name='book', raw_input={{}}, "
        f"raw_output='{TEXT}', is_error=False)"
    ),
    "MCP": {"content": [BLOCK], "isError": False},
    "MCP, all members": {
        "_meta": None,
        "content": [{**BLOCK, "annotations": None}],
        "structuredContent": None,
        "isError": False,
    },
    "MCP, content alone": {"content": [BLOCK]},
    "MCP, structured": {"content": [BLOCK], "structuredContent": {"seat": "14C"}, "isError": False},
    "MCP, repr": f"CallToolResult(meta=None, content=[TextContent(type='text', text='{TEXT}')], isError=False)",
    "MCP, blocks": f"[TextContent(type='text', text='{TEXT}', annotations=None)]",
    "Anthropic": {"type": "tool_result", "tool_use_id": "c1", "content": [BLOCK], "is_error": False},
    "Bedrock": {"toolUseId": "c1", "status": "success", "content": [{"text": TEXT}]},
    "AutoGen, repr": f"FunctionExecutionResult(content='{TEXT}', name='book', call_id='c1', is_error=False)",
    "Agno, str": f"status='success' result='{TEXT}' error=None",
    "Gemini": {"id": "c1", "name": "book", "response": {"result": TEXT}},
    "Vercel": {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": TEXT}},
    "ADK": {"result": TEXT},
    "Upsonic": {"func": TEXT},
    "AgentScope": {"content": [{**BLOCK, "id": "b1"}], "state": "success", "metadata": {}, "id": "c1"},
}
FAILED: dict[str, Any] = {
    "LangChain, repr": "ToolMessage(content='no seats', name='book', tool_call_id='c1', status='error')",
    "LangChain, serialised": {"output": lc(content="no seats", tool_call_id="c1", status="error")},
    "LlamaIndex": {"tool_name": "book", "raw_input": {}, "raw_output": "no seats", "is_error": True},
    "LlamaIndex, repr": "ToolOutput(content='no seats', tool_name='book', raw_output='no seats', is_error=True)",
    "MCP": {"content": [{"type": "text", "text": "no seats"}], "isError": True},
    "MCP, str": "meta=None content=[TextContent(type='text', text='no seats')] structuredContent=None isError=True",
    "Anthropic": {"type": "tool_result", "tool_use_id": "c1", "content": "no seats", "is_error": True},
    "Bedrock": {"toolUseId": "c1", "status": "error", "content": [{"text": "no seats"}]},
    "AutoGen": {"content": "no seats", "name": "book", "call_id": "c1", "is_error": True},
    "Vercel": {"type": "tool-result", "toolCallId": "c1", "output": {"type": "error-text", "value": "no seats"}},
    "AgentScope": {"content": [{"type": "text", "text": "no seats"}], "state": "error", "metadata": {}, "id": "c1"},
    "two of them": {"output": {"content": [{"type": "text", "text": "no seats"}], "isError": True}},
}


def on_span(result: Any) -> ToolCall:
    spans = Spans()
    spans.tool(spans.agent(), "book", {"n": 1}, result=result)
    return trace_of(spans(), "digest", Closing()).tool_calls[0]


def in_history(result: Any) -> ToolCall:
    spans = Spans()
    asked = asks("book", {"n": 1}, "c1")
    spans.llm(given=[user("Book."), type(user("x"))("assistant", (asked,)), gives(result, "c1")], said="Done.")
    return trace_of(spans(), "digest", Closing()).tool_calls[0]


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_results_are_unwrapped(name: str) -> None:
    for call in (on_span(WRAPPED[name]), in_history(WRAPPED[name])):
        assert call.result in (TEXT, json.loads(TEXT))
        assert call.error is None


@pytest.mark.parametrize("name", FAILED)
def test_a_failure_in_a_wrapper_is_the_error(name: str) -> None:
    for call in (on_span(FAILED[name]), in_history(FAILED[name])):
        assert (call.result, call.error) == ("no seats", "no seats")
    assert may_say_failed(FAILED[name])
    assert may_say_failed(json.dumps(FAILED[name]))


@pytest.mark.parametrize(
    "result",
    [
        *(None, "", 0, [], {}, "14C", [1, 2], {"seat": "14C"}),
        {"content": "a page about error handling", "title": "Errors"},
        {"content": "the only text"},
        {"status": "error", "orders": 3},
        {"output": "seats: 3"},
        {"response": {"seats": 3}},
        {"type": "json", "value": 3, "unit": "EUR"},
        {"messages": [{"content": "x"}]},
        {"update": {"version": 3}},
        {"blocks": [{"id": 1}]},
        [{"id": "a", "text": "x", "author": "y"}],
        "Result of the search: nothing",
        "Result(",
        "content=",
    ],
    ids=str,
)
def test_results_without_a_wrapper_are_unchanged(result: Any) -> None:
    assert unwrapped(result) == (result, False)


def test_a_result_is_decoded_only_when_accessed() -> None:
    read: list[Any] = []

    def reads(value: Any) -> Any:
        read.append(value)
        return json.loads(value)

    spans = Spans()
    span = spans.tool(spans.agent(), "book", {"n": 1})
    found = [each.but(result=Captured(TEXT, reads)) if each is span else each for each in spans()]
    [call] = trace_of(found, "digest", Closing()).tool_calls
    assert read == []
    assert call.result == {"seat": "14C"}
    assert read == [TEXT]
