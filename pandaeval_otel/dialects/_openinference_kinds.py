"""Tells an OpenInference span's kind and agent, from its stated kind or from its remaining attributes."""

from __future__ import annotations

import re
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import agent_named
from pandaeval_otel.dialects._tool_values import is_final_answer
from pandaeval_otel.dialects._values import identifier
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

SPAN_KIND = "openinference.span.kind"
INPUT, OUTPUT = "input.value", "output.value"
TOOL_NAME = "tool.name"
AGENT_NAME, NODE = "agent.name", "graph.node.id"
METADATA = "metadata"

_LLM_LEAVES = ("llm.input_messages.", "llm.output_messages.", "llm.prompts.", "llm.tools.", "llm.invocation_parameters")
_KINDS = {
    "LLM": Kind.LLM,
    "AGENT": Kind.AGENT,
    "TOOL": Kind.TOOL,
    "RETRIEVER": Kind.RETRIEVAL,
    "EMBEDDING": Kind.EMBEDDING,
    "GUARDRAIL": Kind.GUARDRAIL,
    "EVALUATOR": Kind.EVALUATION,
    "RERANKER": Kind.STEP,
    "PROMPT": Kind.STEP,
    "DECISION": Kind.STEP,
}
# Chains that are whole runs even where a web server's span stands above them.
_RUN = re.compile(
    r"invocation\b|LangGraph$|AgentExecutor$|Pipeline\.run|.*\.kickoff|.*(?:Agent|Workflow)\.run|ReAct\.forward"
    r"|.*\.run_stream$"
)
_HANDOFF = re.compile(r"hand-?off\b|handoff to ", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:agent_run|invoke_agent) \[?(?P<first>.+?)\]?$|(?P<crew>.+?)\._execute_core$|(?P<run>[^.]+)\.a?run(?:_stream)?$"
)
_SUFFIX = re.compile(r"\.(?:__call__|a?run|a?call|invoke|forward)$")
_LANGCHAIN_AGENT = re.compile(r'"lc_agent_name":\s*"([^"\\]+)"')
_PRIVATE = re.compile(r"\._(?!_)\w+$")


def kind_of(span: RawSpan) -> Kind | None:
    """Returns the span's kind; ``None`` when nothing on it is OpenInference's or nothing tells the kind."""
    attributes = span.attributes
    stated = attributes.get(SPAN_KIND)
    if stated is None and not _is_ours(span):
        return None
    kind = _KINDS.get(stated.upper()) if type(stated) is str else None
    if kind is Kind.LLM:
        # LlamaIndex marks helper methods of its models as model calls, too.
        return Kind.STEP if _PRIVATE.search(span.name) else kind
    if kind is Kind.TOOL:
        return _tool_kind(span)
    if kind is Kind.AGENT:
        return Kind.WORKFLOW if _is_envelope(span) else kind
    if kind is not None:
        return kind
    return _chain_kind(span) if type(stated) is str and stated.upper() == "CHAIN" else _inferred(span)


def agent_of(span: RawSpan, kind: Kind) -> str:
    """Returns the agent that the span belongs to, or ``""`` if nobody named it."""
    attributes = span.attributes
    named = identifier(attributes.get(AGENT_NAME)) or _agent_in_metadata(attributes.get(METADATA))
    if kind not in (Kind.AGENT, Kind.WORKFLOW) or (named and named == span.name):
        return named
    if semconv.AGENT_NAME in attributes:
        return ""
    if kind is Kind.WORKFLOW:
        return agent_named(span.name) if _is_langchain(span) and not span.parent_id else ""
    return named or identifier(attributes.get(NODE)) or _agent_in_name(span)


def _agent_in_name(span: RawSpan) -> str:
    match = _NAMED.match(span.name)
    if match:
        return agent_named(next(name for name in match.groups() if name))
    return agent_named(span.name) if _is_langchain(span) else ""


def tool_of(span: RawSpan) -> str:
    """Returns the name of the tool that a TOOL span calls."""
    return identifier(span.attributes.get(TOOL_NAME)) or _SUFFIX.sub("", span.name.removeprefix("execute_tool "))


def _is_ours(span: RawSpan) -> bool:
    attributes = span.attributes
    return (
        span.scope.name.startswith("openinference.")
        or INPUT in attributes
        or OUTPUT in attributes
        or any(key.startswith(_LLM_LEAVES) for key in attributes)
    )


def _inferred(span: RawSpan) -> Kind | None:
    """Infers the kind of a span that lost it to the SDK's attribute limit, or whose instrumentation did not know it."""
    attributes = span.attributes
    if TOOL_NAME in attributes:
        return _tool_kind(span)
    if AGENT_NAME in attributes:
        return Kind.AGENT
    if any(key.startswith(_LLM_LEAVES) for key in attributes) and (
        SPAN_KIND not in attributes or any(key.startswith("llm.output_messages.") for key in attributes)
    ):
        return Kind.LLM
    if any(key.startswith("retrieval.documents.") for key in attributes):
        return Kind.RETRIEVAL
    if any(key.startswith("embedding.") for key in attributes):
        return Kind.EMBEDDING
    return None if semconv.OPERATION in attributes else _chain_kind(span)


def _chain_kind(span: RawSpan) -> Kind:
    if not span.parent_id or _RUN.match(span.name):
        return Kind.AGENT if _is_named_graph(span) else Kind.WORKFLOW
    return Kind.AGENT if _is_named_graph(span) else Kind.STEP


def _tool_kind(span: RawSpan) -> Kind:
    name = tool_of(span)
    if name == "(merged tools)" or _HANDOFF.match(name) or is_final_answer(name, span.attributes.get(INPUT)):
        return Kind.STEP
    return Kind.TOOL


def _is_envelope(span: RawSpan) -> bool:
    """Returns whether an AGENT span of OpenAI Agents stands for the whole trace rather than for an agent."""
    return "openai_agents" in span.scope.name and NODE not in span.attributes and AGENT_NAME not in span.attributes


def _is_langchain(span: RawSpan) -> bool:
    return span.scope.name == "openinference.instrumentation.langchain"


def _is_named_graph(span: RawSpan) -> bool:
    """Returns whether the span has the name that LangChain puts into the metadata of all of an agent's spans: then it
    is the agent's own."""
    return bool(span.name) and _agent_in_metadata(span.attributes.get(METADATA)) == span.name


def _agent_in_metadata(metadata: Any) -> str:
    match = _LANGCHAIN_AGENT.search(metadata) if type(metadata) is str else None
    return identifier(match[1]) if match else ""
