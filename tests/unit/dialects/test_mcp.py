"""MCP calls by clients, servers and Logfire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import seen

CALL = {"mcp.method.name": "tools/call"}


@pytest.mark.parametrize(
    ("name", "attributes", "scope"),
    [
        ("tools/call get_weather", CALL, ""),
        ("MCP send tools/call get_weather", CALL, "mcp-python-sdk"),
        (
            "tools/call get_weather",
            {**CALL, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"},
            "x",
        ),
        ("tools/call get_weather", {"rpc.system": "mcp", "rpc.method": "tools/call"}, "fastmcp"),
    ],
)
def test_tool_calls_of_every_emitter_are_read(name: str, attributes: dict[str, Any], scope: str) -> None:
    span = seen(attributes, scope, name=name)
    assert (span.kind, span.tool_name) == (Kind.TOOL, "get_weather")


@pytest.mark.parametrize("method", ["tools/list", "prompts/get", "initialize", "resources/read"])
def test_other_mcp_methods_are_steps(method: str) -> None:
    assert seen({"mcp.method.name": method}, name=method).kind is Kind.STEP


def test_a_transport_session_is_no_conversation() -> None:
    assert seen({**CALL, "mcp.session.id": "m-1"}, name="tools/call x").session_ids == ()


def test_remote_calls_other_than_mcp_have_kind_other() -> None:
    assert seen({"rpc.system": "grpc", "rpc.method": "tools/call"}, name="tools/call x").kind is Kind.OTHER


def test_a_delegate_span_inside_a_server_is_a_step() -> None:
    attributes = {**CALL, "fastmcp.provider.type": "FastMCPProvider", "fastmcp.component.key": "tool:get_weather@"}
    assert seen(attributes, "fastmcp", name="delegate get_weather").kind is Kind.STEP


def logfire(method: str, response: Any = None) -> dict[str, Any]:
    request = {"method": method, "params": {"name": "get_weather", "arguments": {"city": "Oslo"}, "_meta": {}}}
    attributes = {"rpc.system": "jsonrpc", "rpc.method": method, "request": json.dumps(request)}
    return attributes if response is None else {**attributes, "response": json.dumps(response)}


def test_arguments_and_result_are_read_from_logfire_request_and_response() -> None:
    response = {"content": [{"type": "text", "text": '{"temp_c": 4}'}], "structuredContent": None, "isError": False}
    span = seen(logfire("tools/call", response), "logfire.mcp", name="MCP request: tools/call get_weather")
    assert (span.kind, span.tool_name) == (Kind.TOOL, "get_weather")
    assert (span.arguments, span.result, span.error) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}), None)


def test_a_result_with_is_error_sets_the_error() -> None:
    response = {"content": [{"type": "text", "text": "no wind"}], "isError": True}
    span = seen(logfire("tools/call", response), "logfire.mcp", name="MCP request: tools/call get_weather")
    assert (span.result, span.error) == (Captured("no wind"), "no wind")


def test_the_method_of_logfire_server_spans_is_read_from_the_request() -> None:
    request = {"request": json.dumps({"method": "tools/call", "params": {"name": "get_weather"}})}
    span = seen(request, "logfire.mcp", name="MCP server handle request: tools/call")
    assert (span.kind, span.tool_name) == (Kind.TOOL, "get_weather")
    assert seen({}, "logfire.mcp", name="MCP server log").kind is Kind.STEP


def test_a_call_with_a_local_provider_is_still_a_tool_call() -> None:
    attributes = {**CALL, "fastmcp.provider.type": "LocalProvider"}
    assert seen(attributes, "fastmcp", name="tools/call get_weather").kind is Kind.TOOL
