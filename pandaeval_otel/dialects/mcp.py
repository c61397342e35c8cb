"""Reads MCP tool calls outside the conventions: Python SDK, FastMCP, Logfire, and spans with only the JSON-RPC
method.
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Reading,
    as_dict,
    give_outcome,
    identifier,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Kind

_RPC_METHOD = "rpc.method"
_RPC_SYSTEMS = frozenset({"jsonrpc", "mcp"})
_LOGFIRE = "logfire.mcp"
_CALL = f"{semconv.MCP_TOOL_CALL} "


class MCP(ByKind):
    name = "mcp"
    priority = 55
    roots = frozenset({"mcp", "fastmcp", "rpc"})
    scopes = (_LOGFIRE, "mcp-python-sdk", "fastmcp")
    names = ("MCP ",)

    def read_span(self) -> Reading | None:
        span_name = self.span.name
        if "fastmcp.provider.type" in self.attributes and not span_name.startswith(semconv.MCP_TOOL_CALL):
            return self.read_as(Kind.STEP)  # inside a server, from the one that was asked to the one that has the tool
        of_logfire = self.span.scope.name.startswith(_LOGFIRE)
        request = as_dict(self.parsed("request")) if of_logfire else {}
        method = self._method() or (identifier(request.get("method")) if of_logfire else None)
        if method is None:
            return None
        if method != semconv.MCP_TOOL_CALL:
            return self.read_as(Kind.STEP)
        self.kind = Kind.TOOL
        if semconv.TOOL_NAME not in self.attributes:
            self.tool_name = identifier(span_name.partition(_CALL)[2])
        if of_logfire:
            # Logfire records the bodies of request and response.
            parameters = as_dict(request.get("params"))
            self.tool_name = identifier(parameters.get("name")) or self.tool_name
            self.arguments = tool_arguments(parameters.get("arguments"))
            give_outcome(self, tool_outcome(self.get("response")))
        return self

    def _method(self) -> str | None:
        method = self.get(semconv.MCP_METHOD)
        if type(method) is str and method:
            return method
        method = self.get(_RPC_METHOD)
        if str(self.get("rpc.system")) in _RPC_SYSTEMS and type(method) is str:
            return method
        return None


DIALECT = MCP
