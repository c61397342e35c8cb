"""Tools that a model's provider runs itself, within the answer that asks for them: how calls and results are told.

A call of such a tool waits for nobody: words beside it may be the answer, and its result stands in the same answer, if
it is told at all. This is the one place that knows the types of such calls.
"""

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
"""Types of parts that are such calls. OpenAI's hold the result as well."""
_RESULTS = frozenset({"server_tool_call_response", "server_tool_result", "tool_search_output"})
_RESULT_SUFFIX = "_tool_result"  # Anthropic: web_search_tool_result, mcp_tool_result …
_MARKS = frozenset({"builtin", "providerExecuted", "provider_executed"})
"""Members that say of an ordinary call or result that the provider ran it (Pydantic AI, Vercel AI SDK)."""
_IDS = re.compile(r"(?:srvtoolu|mcptoolu)_|(?:ws|fs|ci|mcp|ig)_[0-9a-f]{8}")
"""Ids that Anthropic and OpenAI give to such calls, and to no others."""
_OUTPUTS = ("output", "outputs", "results", "logs", "result", "content")
_OWN_OUTPUTS = ("output", "outputs", "results")
"""Members in which a call holds its own result. An image that was made is none to be read."""
_BESIDE = frozenset(
    {
        *("type", "id", "call_id", "tool_use_id", "name", "toolName", "status", "error", "caller", "index"),
        *("server_label", "server_name", "serverLabel", "approval_request_id", "arguments", "sources"),
        *("server_tool_call", "action", "extras"),
    }
)
"""Members that are neither an argument nor a result."""
_NOT_CHOSEN = frozenset({"container_id", "containerId", "sources"})
NOT_TOLD = object()
"""Stands for a result that was not told."""


def is_result(kind: str) -> bool:
    """Return whether a part of the type ``kind`` is the result of such a call."""
    return kind in _RESULTS or (kind.endswith(_RESULT_SUFFIX) and len(kind) > len(_RESULT_SUFFIX))


def is_hosted(part: Object, name: str, call_id: str) -> bool:
    """Return whether an ordinary ``part`` with a call, or with the result of one, tells of such a call."""
    if name in CALLS or (call_id and _IDS.match(call_id) is not None):
        return True
    return not _MARKS.isdisjoint(part) and any(part.get(mark) is True for mark in _MARKS)


def read_call(call: Object, kind: str) -> tuple[str, Any, Any]:
    """Return the tool's name (the type of the call where nothing names it), what it was called with (``None`` if that
    is not told), and the result that the call holds itself, as :func:`outcome` does."""
    inner = call.get("server_tool_call", call)
    if type(inner) is not dict:
        return identifier(call.get("name")) or kind, parsed(inner), NOT_TOLD
    name = call.get("name") or (first(inner, ("name", "type")) if inner is not call else "")
    arguments = parsed(first(inner, ("input", "arguments", "args", "action")))
    if arguments is None:
        arguments = {key: value for key, value in inner.items() if key not in _BESIDE and key not in _OUTPUTS} or None
    own = {key: inner[key] for key in ("status", "error", *_OWN_OUTPUTS) if inner.get(key) is not None}
    return identifier(name) or kind, chosen(arguments), outcome(own)


def chosen(arguments: Any) -> Any:
    """Return the arguments without what no model chose: where code ran, pages that were found, and fields left out."""
    if type(arguments) is not dict:
        return arguments
    return {key: value for key, value in arguments.items() if key not in _NOT_CHOSEN and value is not None}


def outcome(told: Any) -> Any:
    """Return the result in ``told`` without what providers write around it; where that says that the tool failed, in
    MCP's form of that. A status alone is no result: :data:`NOT_TOLD`."""
    told = parsed(told)
    if type(told) is not dict:
        if told is None:
            return NOT_TOLD
        return told
    error = first(told, ("error", "error_code"))
    if error or told.get("status") == "failed" or str(told.get("type")).endswith("_error"):
        return {"content": error or first(told, _OUTPUTS) or "failed", "is_error": True}
    rest = told.keys() - _BESIDE
    if not rest:
        return NOT_TOLD
    only = next(iter(rest)) if len(rest) == 1 else ""
    if only in _OUTPUTS:
        return outcome(told[only])
    return told


def grounding_of(candidate: Object) -> tuple[str, Object, Any] | None:
    """Return tool, arguments and result of the search in which Gemini grounded an answer; ``None`` where it did not.
    Of pages of the web it tells titles alone: no result. Of files it tells the passages."""
    told = first(candidate, ("groundingMetadata", "grounding_metadata"))
    if type(told) is not dict:
        return None
    keys = ("webSearchQueries", "web_search_queries", "retrievalQueries", "retrieval_queries")
    queries = next((told[key] for key in keys if told.get(key)), None)
    chunks = first(told, ("groundingChunks", "grounding_chunks"))
    found = [
        first(each, ("retrievedContext", "retrieved_context"))
        for each in (chunks if type(chunks) is list else ())
        if type(each) is dict
    ]
    passages = [each for each in found if type(each) is dict and each.get("text")]
    if not queries and not found:
        return None
    name = "file_search" if passages else "google_search"
    return name, {"queries": queries} if queries else {}, passages or NOT_TOLD
