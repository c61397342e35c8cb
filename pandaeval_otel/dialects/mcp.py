"""Reads tool calls over MCP that do not follow the conventions: of the Python SDK, FastMCP, Logfire, and of spans that
state only JSON-RPC's method."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    Dialect,
    Logs,
    RawSpan,
    Reading,
    as_dict,
    give_outcome,
    identifier,
    parsed,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Kind

_RPC_METHOD = "rpc.method"
_RPC_SYSTEMS = frozenset({"jsonrpc", "mcp"})
_LOGFIRE = "logfire.mcp"
_CALL = f"{semconv.MCP_TOOL_CALL} "


class MCP(Dialect):
    """Reads the method and the tool of an MCP call outside the conventions' own attributes."""

    name = "mcp"
    priority = 55
    roots = frozenset({"mcp", "fastmcp", "rpc"})
    scopes = (_LOGFIRE, "mcp-python-sdk", "fastmcp")
    names = ("MCP ",)

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        if "fastmcp.provider.type" in attributes and not span.name.startswith(semconv.MCP_TOOL_CALL):
            return Reading(kind=Kind.STEP)  # inside a server, from the one that was asked to the one that has the tool
        of_logfire = span.scope.name.startswith(_LOGFIRE)
        request = as_dict(parsed(attributes.get("request"))) if of_logfire else {}
        method = _method(attributes) or (identifier(request.get("method")) if of_logfire else None)
        if method is None:
            return None
        if method != semconv.MCP_TOOL_CALL:
            return Reading(kind=Kind.STEP)
        reading = Reading(kind=Kind.TOOL)
        if semconv.TOOL_NAME not in attributes:
            reading.tool_name = identifier(span.name.partition(_CALL)[2])
        if of_logfire:
            # Logfire records the bodies of request and response.
            parameters = as_dict(request.get("params"))
            reading.tool_name = identifier(parameters.get("name")) or reading.tool_name
            reading.arguments = tool_arguments(parameters.get("arguments"))
            give_outcome(reading, tool_outcome(attributes.get("response")))
        return reading


DIALECT = MCP()


def _method(attributes: Attributes) -> str | None:
    method = attributes.get(semconv.MCP_METHOD)
    if type(method) is str and method:
        return method
    method = attributes.get(_RPC_METHOD)
    if str(attributes.get("rpc.system")) in _RPC_SYSTEMS and type(method) is str:
        return method
    return None
