"""Reads calls and results of hosted tools, which the provider runs within an answer."""

from __future__ import annotations

import re
from typing import Any

from pandaeval_otel.dialects._values import Object, first, identifier, parsed

CALLS = frozenset(
    {
        *("server_tool_call", "server_tool_use", "mcp_tool_use"),  # the conventions and LangChain; Anthropic
        *("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"),  # OpenAI
        *("image_generation_call", "tool_search_call"),
    }
)
"""Part types of hosted calls. OpenAI's types include the result."""
_RESULTS = frozenset({"server_tool_call_response", "server_tool_result", "tool_search_output"})
_RESULT_SUFFIX = "_tool_result"  # Anthropic: web_search_tool_result, mcp_tool_result …
_MARKS = frozenset({"builtin", "providerExecuted", "provider_executed"})
"""Members that mark a normal call or result as hosted (Pydantic AI, Vercel AI SDK)."""
_IDS = re.compile(r"(?:srvtoolu|mcptoolu)_|(?:ws|fs|ci|mcp|ig)_[0-9a-f]{8}")
"""Matches the ids that only hosted calls of Anthropic and OpenAI have."""
_OUTPUTS = ("output", "outputs", "results", "logs", "result", "content")
_OWN_OUTPUTS = ("output", "outputs", "results")
"""Members in which a call holds its result. Generated images are not read."""
_BESIDE = frozenset(
    {
        *("type", "id", "call_id", "tool_use_id", "name", "toolName", "status", "error", "caller", "index"),
        *("server_label", "server_name", "serverLabel", "approval_request_id", "arguments", "sources"),
        *("server_tool_call", "action", "extras"),
    }
)
"""Members that are neither argument nor result."""
_NOT_CHOSEN = frozenset({"container_id", "containerId", "sources"})
NOT_RECORDED = object()
"""Marks a result that was not recorded."""


def is_result(kind: str) -> bool:
    return kind in _RESULTS or (kind.endswith(_RESULT_SUFFIX) and len(kind) > len(_RESULT_SUFFIX))


def is_hosted(part: Object, name: str, call_id: str) -> bool:
    if name in CALLS or (call_id and _IDS.match(call_id) is not None):
        return True
    return not _MARKS.isdisjoint(part) and any(part.get(mark) is True for mark in _MARKS)


def read_call(call: Object, kind: str) -> tuple[str, Any, Any]:
    """Return name (else type), arguments (``None`` if absent) and :func:`outcome` of a hosted call."""
    inner = call.get("server_tool_call", call)
    if type(inner) is not dict:
        return identifier(call.get("name")) or kind, parsed(inner), NOT_RECORDED
    name = call.get("name") or (first(inner, ("name", "type")) if inner is not call else "")
    arguments = parsed(first(inner, ("input", "arguments", "args", "action")))
    if arguments is None:
        arguments = {key: value for key, value in inner.items() if key not in _BESIDE and key not in _OUTPUTS} or None
    own = {key: inner[key] for key in ("status", "error", *_OWN_OUTPUTS) if inner.get(key) is not None}
    return identifier(name) or kind, chosen(arguments), outcome(own)


def chosen(arguments: Any) -> Any:
    if type(arguments) is not dict:
        return arguments
    return {key: value for key, value in arguments.items() if key not in _NOT_CHOSEN and value is not None}


def outcome(result: Any) -> Any:
    """Return the result without the wrapping of the provider, failures as in MCP; or :data:`NOT_RECORDED`."""
    result = parsed(result)
    if type(result) is not dict:
        if result is None:
            return NOT_RECORDED
        return result
    error = first(result, ("error", "error_code"))
    if error or result.get("status") == "failed" or str(result.get("type")).endswith("_error"):
        return {"content": error or first(result, _OUTPUTS) or "failed", "is_error": True}
    rest = result.keys() - _BESIDE
    if not rest:
        return NOT_RECORDED
    only = next(iter(rest)) if len(rest) == 1 else ""
    if only in _OUTPUTS:
        return outcome(result[only])
    return result


def grounding_of(candidate: Object) -> tuple[str, Object, Any] | None:
    """Return tool, arguments and result of the search that grounds a Gemini answer, or ``None``.

    Web searches list only titles, so they have no result.
    """
    metadata = first(candidate, ("groundingMetadata", "grounding_metadata"))
    if type(metadata) is not dict:
        return None
    keys = ("webSearchQueries", "web_search_queries", "retrievalQueries", "retrieval_queries")
    queries = next((metadata[key] for key in keys if metadata.get(key)), None)
    chunks = first(metadata, ("groundingChunks", "grounding_chunks"))
    found = [
        first(each, ("retrievedContext", "retrieved_context"))
        for each in (chunks if type(chunks) is list else ())
        if type(each) is dict
    ]
    passages = [each for each in found if type(each) is dict and each.get("text")]
    if not queries and not found:
        return None
    name = "file_search" if passages else "google_search"
    return name, {"queries": queries} if queries else {}, passages or NOT_RECORDED
