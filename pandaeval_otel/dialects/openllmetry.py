"""Reads OpenLLMetry (Traceloop): ``traceloop.*``, ``gen_ai.prompt.N.*``, ``gen_ai.completion.N.*`` and
``llm.request.*``.

Newer releases write OTel messages. Others also write the older keys.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Reading,
    Switch,
    agent_named,
    answered,
    asked,
    crew_question,
    documents_in,
    drop_unnamed,
    identifier,
    indexed,
    indexed_messages,
    keys,
    kinds,
    parsed,
    put_input,
    put_output,
    read_metadata,
    said_by_user,
    tool_definitions,
    without_protocol,
)
from pandaeval_otel.model import Kind

_SPAN_KIND = "traceloop.span.kind"
_ENTITY, _INPUT, _OUTPUT = "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output"
_PROPERTIES = "traceloop.association.properties."
_LANGCHAIN_AGENT = f"{_PROPERTIES}lc_agent_name"
_REQUEST_TYPE = "llm.request.type"
_GIVEN, _ANSWERS, _FUNCTIONS = "gen_ai.prompt", "gen_ai.completion", "llm.request.functions"
_LISTS = frozenset({_GIVEN, _ANSWERS, _FUNCTIONS})
_PREFIXES = (f"{_GIVEN}.", f"{_ANSWERS}.")
_TOOL_NAME, _TOOL_ARGUMENTS = "tool.name", "tool.arguments"
_ARGUMENTS = (_TOOL_ARGUMENTS, semconv.TOOL_ARGUMENTS, _INPUT)
_CREW_RESULT, _CREW_TASKS = "crewai.crew.result", "crewai.crew.tasks"
_CREW_WORKFLOW = "crewai.workflow"

_KINDS = kinds(workflow="workflow", agent="agent", tool="tool", step=("task", "handoff", "session", "unknown"))
_REQUEST_KINDS = kinds(llm=("chat", "completion"), embedding="embedding", step="rerank")
_CALL_KINDS = kinds(
    llm=("chat", "text_completion", "generate_content"),
    embedding="embeddings",
    retrieval="vector_db_retrieve",
    tool="execute_tool",
)
"""Kinds by operation, for spans that instrumentations mark as tasks."""
_MARKS = frozenset({_SPAN_KIND, _REQUEST_TYPE, _INPUT, _OUTPUT, _ENTITY, "traceloop.workflow.name"})
_FIRST_LEAVES = ("role", "content", "user", "finish_reason", "tool_calls.0.name", "tool_calls.0.id")
_INDEXED = frozenset(f"{prefix}0.{leaf}" for prefix in _PREFIXES for leaf in _FIRST_LEAVES)
_SUFFIXES = (".tool", ".agent", ".workflow", ".task")
_LIBRARIES = ("openai.v1", "anthropic", "langchain", "openai_agents", "crewai", "llamaindex", "bedrock", "agno")
_OWN_SCOPES = tuple(f"opentelemetry.instrumentation.{library}" for library in _LIBRARIES)


class OpenLLMetry(ByKind):
    name = "openllmetry"
    priority = 60
    roots = frozenset({"traceloop", "llm", "gen_ai"})
    scopes = ("traceloop",)
    names = (_CREW_WORKFLOW,)
    content_switch = Switch(
        dict.fromkeys(
            ("traceloop.", "openllmetry", *_OWN_SCOPES),
            "set TRACELOOP_TRACE_CONTENT=true (it may have been set to false)",
        )
    )
    marks = _MARKS | _INDEXED
    any_keys = keys(agent_name=_LANGCHAIN_AGENT)
    tool_keys = keys(arguments=_ARGUMENTS, outcome=(semconv.TOOL_RESULT, _OUTPUT))

    def kind_of(self) -> Kind | None:
        operation, stated = self.get(semconv.OPERATION), self.get(_SPAN_KIND)
        if type(operation) is str and operation in _CALL_KINDS:
            return _CALL_KINDS[operation]
        kind = _KINDS.get(stated) if type(stated) is str else None
        if kind is Kind.WORKFLOW and operation == "invoke_agent":
            return Kind.AGENT  # LangChain's graphs: the workflow is the agent, with its name beside it
        if kind is Kind.STEP and _TOOL_NAME in self.attributes and _TOOL_ARGUMENTS in self.attributes:
            return Kind.TOOL  # LlamaIndex: a task like any other method, but one that calls a tool
        if kind is not None:
            return kind
        if self.span.name == _CREW_WORKFLOW:
            return Kind.WORKFLOW
        request = self.get(_REQUEST_TYPE)
        kind = _REQUEST_KINDS.get(request) if type(request) is str else None
        if kind is None and operation is None:
            if self._has_lists():
                return Kind.LLM
            return _KINDS.get(self.span.name.rpartition(".")[2], Kind.STEP)
        return kind

    def read_span(self) -> Reading | None:
        if _MARKS.isdisjoint(self.attributes) and not self._has_lists() and self.span.name != _CREW_WORKFLOW:
            return None
        return self.read_as(self.kind_of())

    def read_any(self) -> None:
        read_metadata(self, self.attributes, _PROPERTIES)
        self.user_id = self.user_id or self.name_in("llm.user")

    def read_llm(self) -> None:
        lists = indexed(self.attributes, _LISTS)
        self.input = indexed_messages(lists.get(_GIVEN), "user")
        self.output = without_protocol(indexed_messages(lists.get(_ANSWERS), "assistant"))
        self.tools = tool_definitions(lists.get(_FUNCTIONS))

    read_unstated = read_llm

    def read_tool(self) -> None:
        named = identifier(self.first(semconv.TOOL_NAME, _TOOL_NAME))
        self.tool_name = named or self.tool_name or self._entity()
        drop_unnamed(self)

    def read_agent(self) -> None:
        self.read_llm()
        if semconv.AGENT_NAME in self.attributes:
            self.agent_name = ""  # the conventions' own key says it
        elif self.agent_name != self._entity():
            is_graph = self.span.scope.name == "opentelemetry.instrumentation.langchain" and not self.span.parent_id
            self.agent_name = agent_named(self._entity()) if self.kind is Kind.AGENT or is_graph else ""
        if self.input is None:
            put_input(self, asked(_unwrapped(self.get(_INPUT), "inputs")))
        if self.output is None:
            put_output(self, answered(_unwrapped(self.get(_OUTPUT), "outputs")))
        if self.input is None:
            self.input = said_by_user(crew_question(self.get(_CREW_TASKS)) or None)
        if self.output is None:
            self.output = answered(self.get(_CREW_RESULT))[0]

    read_workflow = read_agent

    def read_retrieval(self) -> None:
        self.input = asked(_unwrapped(self.get(_INPUT), "query"))[0]
        self.documents = documents_in(self.get(_OUTPUT), "documents", "output", "outputs")

    def _has_lists(self) -> bool:
        if not _INDEXED.isdisjoint(self.attributes):
            return True
        # The SDK drops the oldest attributes first: the rest of a list may begin anywhere.
        return self.span.dropped_attributes > 0 and any(key.startswith(_PREFIXES) for key in self.attributes)

    def _entity(self) -> str:
        named = self.name_in(_ENTITY) or self.span.name
        for suffix in _SUFFIXES:
            named = named.removesuffix(suffix)
        return named


DIALECT = OpenLLMetry


def _unwrapped(value: Any, member: str) -> Any:
    whole = parsed(value)
    if type(whole) is dict and member in whole and "kwargs" in whole:
        return whole[member]
    return whole
