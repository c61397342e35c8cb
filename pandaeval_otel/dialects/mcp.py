"""Reads tool calls over MCP that do not follow the conventions: of the Python SDK, FastMCP, Logfire, and of spans that
state only JSON-RPC's method."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Dialect,
    Logs,
    RawSpan,
    Reading,
    give_outcome,
    hidden,
    identifier,
    parsed,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Kind

_RPC_METHOD = "rpc.method"
_RPC_SYSTEMS = frozenset({"jsonrpc", "mcp"})
_REQUEST = "request"
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
        method = _method(span)
        if method is None:
            return None
        if method != semconv.MCP_TOOL_CALL:
            return Reading(kind=Kind.STEP)
        reading = Reading(kind=Kind.TOOL)
        if semconv.TOOL_NAME not in attributes:
            reading.tool_name = identifier(span.name.partition(_CALL)[2])
        if span.scope.name.startswith(_LOGFIRE):
            # Logfire records the bodies of request and response.
            request = parsed(attributes.get(_REQUEST))
            parameters = request.get("params") if type(request) is dict else None
            if type(parameters) is dict:
                reading.tool_name = identifier(parameters.get("name")) or reading.tool_name
                reading.arguments = tool_arguments(parameters.get("arguments"))
            response = attributes.get("response")
            if not hidden(response):
                give_outcome(reading, tool_outcome(response))
        return reading


DIALECT = MCP()


def _method(span: RawSpan) -> str | None:
    attributes = span.attributes
    method = attributes.get(semconv.MCP_METHOD)
    if type(method) is str and method:
        return method
    if str(attributes.get("rpc.system")) in _RPC_SYSTEMS and type(attributes.get(_RPC_METHOD)) is str:
        return str(attributes[_RPC_METHOD])
    if span.scope.name.startswith(_LOGFIRE):
        request = parsed(attributes.get(_REQUEST))
        return identifier(request.get("method")) if type(request) is dict else ""
    return None
