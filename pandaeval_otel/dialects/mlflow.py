"""Reads MLflow's own spans: ``mlflow.*``. Every value is JSON, also strings."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    agent_in_metadata,
    agent_named,
    as_dict,
    identifier,
    keys,
    kinds,
    metadata_sessions,
    one_session,
    prompted_tools,
    read_sides,
    run_kind,
    system_of,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind, Usage

_TYPE, _INPUTS, _OUTPUTS = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_KINDS = KINDS | kinds(llm="chat_model", step=("parser", "reranker", "memory"))


class MLflow(ByKind):
    name = "mlflow"
    priority = 65
    roots = frozenset({"mlflow"})
    tool_keys = keys(arguments=_INPUTS, outcome=_OUTPUTS)
    retrieval_keys = keys(run_input=_INPUTS, documents=_OUTPUTS)

    def kind_of(self) -> Kind | None:
        if _TYPE not in self.attributes and _INPUTS not in self.attributes and _OUTPUTS not in self.attributes:
            return None
        stated = self.parsed(_TYPE)
        return (_KINDS.get(stated.lower()) if type(stated) is str else None) or run_kind(not self.span.parent_id)

    def read_any(self) -> None:
        metadata = self.get("metadata")
        self.session_ids = one_session(self.parsed("mlflow.trace.session")) or metadata_sessions(metadata)
        self.agent_name = agent_in_metadata(metadata)
        self.user_id = identifier(self.parsed("mlflow.trace.user"))

    def read_tool(self) -> None:
        # Spans that MLflow takes over from other instrumentations have the conventions' names.
        self.tool_name = "" if semconv.TOOL_NAME in self.attributes else self._tool_name()

    def read_llm(self) -> None:
        given = self.parsed(_INPUTS)
        read_sides(self, given, self.get(_OUTPUTS))
        request = as_dict(given)
        self.system = system_of(self.input)
        offered = self.get("mlflow.chat.tools")
        if offered is None:
            offered = request.get("tools") or request.get("model_request_parameters")  # Pydantic AI's
        self.tools = tool_definitions(offered) or prompted_tools(self.system)
        self.request_model = identifier(self.parsed("mlflow.llm.model") or request.get("model"))
        self.usage = self._usage()

    def read_agent(self) -> None:
        read_sides(self, self.get(_INPUTS), self.get(_OUTPUTS))
        self.usage = self._usage()
        if self.kind is Kind.AGENT and semconv.AGENT_NAME not in self.attributes:
            self.agent_name = (
                self.agent_name
                or identifier(self.parsed("name"))
                or agent_named(self.span.name) * ("." not in self.span.name)
            )

    read_workflow = read_agent

    def _tool_name(self) -> str:
        function = identifier(self.parsed("mlflow.spanFunctionName"))
        stem, _, number = self.span.name.rpartition("_")
        if function and number.isdecimal() and stem == function:
            return function
        return self.span.name.removeprefix("Tool.")

    def _usage(self) -> Usage | None:
        spent = self.parsed("mlflow.chat.tokenUsage")
        return usage_in(spent, *_TOKENS) or (Usage() if type(spent) is dict else None)


DIALECT = MLflow
