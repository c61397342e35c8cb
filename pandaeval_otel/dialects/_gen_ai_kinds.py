"""What a span of the GenAI conventions is: from its operation, or from what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._values import identifier
from pandaeval_otel.dialects.plain import kind_by_name
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

_KINDS = {
    "chat": Kind.LLM,
    "text_completion": Kind.LLM,
    "generate_content": Kind.LLM,
    "fetch_response": Kind.LLM,
    "completion": Kind.LLM,
    "chat.completions": Kind.LLM,
    "text.completions": Kind.LLM,
    "llm_call": Kind.LLM,
    "llm_request": Kind.LLM,
    "embeddings": Kind.EMBEDDING,
    "retrieval": Kind.RETRIEVAL,
    "vector_db_retrieve": Kind.RETRIEVAL,
    "invoke_agent": Kind.AGENT,
    "agent_call": Kind.AGENT,
    "create_agent": Kind.STEP,  # making an agent is no run of it: frameworks emit it at construction, in its own trace
    "execute_tool": Kind.TOOL,
    "tool_call": Kind.TOOL,
    "invoke_workflow": Kind.WORKFLOW,
    "invoke_swarm": Kind.WORKFLOW,
    "invoke_graph": Kind.WORKFLOW,
    "evaluation": Kind.EVALUATION,
}
"""``gen_ai.operation.name``; any other word is a step of some framework."""

_MERGED_TOOLS = "(merged tools)"
"""ADK closes parallel calls with a span of this tool name. No tool was called."""
# Looked up here and not in another module: this is asked of every span.
_OPERATION, _TOOL_NAME, _TOOL_CALL_ID = semconv.OPERATION, semconv.TOOL_NAME, semconv.TOOL_CALL_ID
_EVALUATION_KEYS = (semconv.EVALUATION_NAME, semconv.EVALUATION_SCORE, semconv.EVALUATION_LABEL)


def kind_of(span: RawSpan, attributes: Mapping[str, Any]) -> Kind | None:
    """The span's kind; ``None`` where nothing on it tells."""
    operation = attributes.get(_OPERATION)
    kind = _KINDS.get(operation) if type(operation) is str else None
    if kind is not None:
        return Kind.STEP if attributes.get(_TOOL_NAME) == _MERGED_TOOLS else kind
    if any(key in attributes for key in _EVALUATION_KEYS) and not _names_tool(span, attributes):
        return Kind.EVALUATION
    if operation and identifier(operation):
        return Kind.STEP
    return _kind_without_operation(span, attributes) or (Kind.STEP if operation else None)


def _names_tool(span: RawSpan, attributes: Mapping[str, Any]) -> bool:
    """Whether a span is a tool's, whatever score stands on it: nothing that an agent did is taken for a score."""
    if _TOOL_NAME in attributes or _TOOL_CALL_ID in attributes or semconv.MCP_METHOD in attributes:
        return True
    return kind_by_name(span.name)[0] is Kind.TOOL


def _kind_without_operation(span: RawSpan, attributes: Mapping[str, Any]) -> Kind | None:
    method = attributes.get(semconv.MCP_METHOD)
    if method is not None:
        return Kind.TOOL if method == semconv.MCP_TOOL_CALL else Kind.STEP
    kind = kind_by_name(span.name)[0]
    if kind is not None:
        return kind
    if semconv.TOOL_NAME in attributes or semconv.TOOL_CALL_ID in attributes:
        return Kind.TOOL
    if semconv.REQUEST_MODEL in attributes or semconv.RESPONSE_MODEL in attributes:
        return Kind.LLM
    return Kind.WORKFLOW if semconv.WORKFLOW_NAME in attributes else None
