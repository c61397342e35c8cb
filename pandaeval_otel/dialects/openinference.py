"""Reads OpenInference (Arize, Phoenix): ``openinference.*``, ``llm.*``, ``input.*`` and ``output.*``.

Its processors copy these keys onto other spans with less detail. This dialect leaves those fields to the originals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    Fields,
    Messages,
    Reading,
    Switch,
    agent_in_metadata,
    agent_named,
    answered,
    as_dict,
    as_list,
    asked,
    count,
    crew_question,
    documents_in,
    each_part,
    give_outcome,
    identifier,
    indexed,
    indexed_messages,
    keys,
    kinds,
    metadata_sessions,
    model_input,
    model_output,
    parsed,
    prompted_tools,
    put_input,
    put_output,
    said_by_user,
    salvage,
    split_prompt,
    system_of,
    tool_arguments,
    tool_definitions,
    tool_of_server,
    tool_outcome,
    usage_in,
    without_protocol,
    without_task_mark,
)
from pandaeval_otel.dialects._response_bodies import with_hosted_calls, with_thoughts
from pandaeval_otel.model import Kind, Part, ToolDefinition, ToolRequest, ToolResponse, Usage
from pandaeval_otel.model.message import all_parts

_SPAN_KIND = "openinference.span.kind"
_INPUT, _OUTPUT = "input.value", "output.value"
_TOOL_NAME = "tool.name"
_AGENT_NAME, _NODE = "agent.name", "graph.node.id"
_METADATA = "metadata"

_LLM_LEAVES = ("llm.input_messages.", "llm.output_messages.", "llm.prompts.", "llm.tools.", "llm.invocation_parameters")
_KINDS = KINDS | kinds(step=("reranker", "prompt", "decision"))
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
_PRIVATE = re.compile(r"\._(?!_)\w+$")
_GIVEN, _ANSWERS, _TOOLS = "llm.input_messages", "llm.output_messages", "llm.tools"
_PROMPTS, _CHOICES, _DOCUMENTS = "llm.prompts", "llm.choices", "retrieval.documents"
_LISTS = frozenset({_GIVEN, _ANSWERS, _TOOLS, _PROMPTS, _CHOICES})
_MODEL = "llm.model_name"
_INVOCATION = "llm.invocation_parameters"
_TOOL_COUNTS = "tool_call_counts"
_SMOLAGENTS_TOOLS = "smolagents.tools_names"
_CREW_TASKS = "crew_tasks"
_RESPONSE_ID = re.compile(r'\{\s*"id":\s*"((?:resp_|chatcmpl-|msg_)[\w-]+)"')
_CONTINUES = '"previous_response_id":'
_PREVIOUS_ID = re.compile(rf'{_CONTINUES}\s*"(resp_[\w-]+)"')
_MODEL_IN_REPR = re.compile(r"_meta=\{'model': '([^']+)'")
"""Finds the model in a message repr. Haystack agents without model-call spans name it only there."""
_MAX_CACHED = 20_000
"""Maximum length of a cached tool definition, in characters. Definitions recur with every model call."""


class OpenInference(ByKind):
    name = "openinference"
    priority = 50
    roots = frozenset({"openinference", "llm"})
    shared_roots = frozenset({"input", "output"})
    scopes = ("openinference.",)
    embedding_keys = keys(request_model=("embedding.model_name", _MODEL))
    retrieval_keys = keys(run_input=_INPUT)
    tool_keys = keys(tool_call_id=("tool_call.id", "tool.call_id", "tool.id"))
    content_switch = Switch(
        {
            "openinference.": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other "
            "OPENINFERENCE_HIDE_*"
        }
    )

    def read_span(self) -> Reading | None:
        reading = super().read_span()
        if reading is not None and self.span.scope.name == "openinference.instrumentation.claude_agent_sdk":
            self.tool_name = tool_of_server(self.tool_name)
            self.output = each_part(self.output, _of_server)
        return reading

    def read_any(self) -> None:
        self.agent_name = self._agent_of()
        if _METADATA in self.attributes and semconv.SESSION_ID not in self.attributes:
            self.session_ids = metadata_sessions(self.get(_METADATA))
        parameters = self.get(_INVOCATION)
        if self.kind is Kind.LLM and type(parameters) is str and '"metadata":' in parameters:
            # The metadata of a model request may name a session.
            request = as_dict(parsed(parameters))
            self.session_ids = self.session_ids or metadata_sessions(request.get("metadata"))

    def read_embedding(self) -> None:
        self.usage = self._usage()

    def read_llm(self) -> None:
        lists = indexed(self.attributes, _LISTS)
        if semconv.INPUT_MESSAGES not in self.attributes:
            self._read_input(lists)
        if semconv.OUTPUT_MESSAGES not in self.attributes:
            self._read_output(lists)
        self.tools = self._tools(lists.get(_TOOLS, []))
        for value in (self.get(_OUTPUT), self.get(_INVOCATION)):  # the request tells it best
            if type(value) is str and _CONTINUES in value and (match := _PREVIOUS_ID.search(value)):
                self.previous_response_id = match[1]
        self.usage = self._usage()
        self.request_model = self.name_in("llm.request.model_name") or self.name_in(_MODEL)
        if not self.request_model:
            self.request_model = identifier(as_dict(self.parsed(_INVOCATION)).get("model"))
        self.response_model = self.name_in("llm.response.model_name") or self.response_model

    read_agent = read_workflow = read_llm

    def read_tool(self) -> None:
        self.tool_name = self._tool_of()
        if semconv.TOOL_ARGUMENTS not in self.attributes:
            self.arguments = tool_arguments(self.get(_INPUT), self.get("tool.parameters"))
        if semconv.TOOL_RESULT not in self.attributes:
            give_outcome(self, tool_outcome(self.get(_OUTPUT)))
        if self.arguments and type(self.arguments.value) is str:
            # LangGraph writes the one argument of a tool without its name; the model's request for this call has it.
            metadata = self.get(_METADATA)
            if self.tool_call_id or (type(metadata) is str and '"langgraph_node"' in metadata):
                self.arguments = None

    def read_retrieval(self) -> None:
        documents = []
        for fields in indexed(self.attributes, frozenset({_DOCUMENTS})).get(_DOCUMENTS, ()):
            document = {path.removeprefix("document."): value for path, value in fields.items()}
            if "metadata" in document:
                document["metadata"] = parsed(document["metadata"])
            documents.append(document)
        self.documents = tuple(documents) or documents_in(self.get(_OUTPUT), "documents")

    def _read_input(self, lists: Mapping[str, list[Fields]]) -> None:
        self.input = _with_lost_results(
            without_task_mark(indexed_messages(lists.get(_GIVEN), "user")), self.get(_INPUT)
        )
        if self.input is None and _PROMPTS in lists:
            texts = [str(text) for fields in lists[_PROMPTS] for text in fields.values()]
            self.input = split_prompt(said_by_user("\n".join(texts)))
        if self.input is None:
            read = model_input if self.kind is Kind.LLM else asked
            put_input(self, read(self.get(_INPUT)))
        if self.input is None and _CREW_TASKS in self.attributes:
            # The tasks' descriptions of a CrewAI kickoff, with the crew's inputs filled in.
            text = crew_question(self.attributes[_CREW_TASKS])
            for name, value in as_dict(self.parsed("crew_inputs")).items():
                text = text.replace(f"{{{name}}}", str(value))
            self.input = said_by_user(text or None)
        self.system = system_of(self.input)

    def _read_output(self, lists: Mapping[str, list[Fields]]) -> None:
        value = self.get(_OUTPUT)
        text = value if type(value) is str else ""
        of_model = self.kind is Kind.LLM
        if of_model or _OUTPUT not in self.attributes:
            reason = self.name_in("llm.finish_reason")
            self.output = indexed_messages(lists.get(_ANSWERS) or lists.get(_CHOICES), "assistant", reason)
            if text and self.output:
                self.output = without_protocol(with_thoughts(with_hosted_calls(self.output, text), text))
            if match := _RESPONSE_ID.match(text):
                self.response_id = match[1]
        if self.output is None:
            put_output(self, (model_output if of_model else answered)(value))
            if match := _MODEL_IN_REPR.search(text):
                self.response_model = match[1]
        whole = None if of_model else indexed_messages(lists.get(_ANSWERS), "assistant")
        if whole and (self.output is None or _is_end(self.output, whole)):
            self.output = whole

    def _usage(self) -> Usage | None:
        details = "llm.token_count.prompt_details"
        return usage_in(
            self.attributes,
            "llm.token_count.prompt",
            "llm.token_count.completion",
            f"{details}.cache_read" if count(self.get(f"{details}.cache_read")) else f"{details}.cache_input",
            f"{details}.cache_write",
            "llm.token_count.completion_details.reasoning",
        )

    def _tools(self, listed: list[Fields]) -> tuple[ToolDefinition, ...] | None:
        known = tool_definitions(self.get(semconv.TOOL_DEFINITIONS)) or ()
        # Some emitters write null for the parameters under the conventions' own key.
        if listed and all(tool.parameters is None for tool in known):
            return tuple([tool for fields in listed for tool in _defined(fields)]) or None
        if _SMOLAGENTS_TOOLS in self.attributes:
            return _named_tools(self.attributes[_SMOLAGENTS_TOOLS])
        for request in (self.get(_INVOCATION), self.get(_INPUT)) if not known and self.kind is Kind.LLM else ():
            if type(request) is str and '"tools":' in request:
                return tool_definitions(as_dict(parsed(request)).get("tools"))
        return prompted_tools(self.system) or _counted_tools(self.get(_OUTPUT))

    def kind_of(self) -> Kind | None:
        stated = self.get(_SPAN_KIND)
        if (
            stated is None
            and not self.span.scope.name.startswith("openinference.")
            and not (_INPUT in self.attributes or _OUTPUT in self.attributes)
            and not any(key.startswith(_LLM_LEAVES) for key in self.attributes)
        ):
            return None
        word = stated.lower() if type(stated) is str else ""
        kind = _KINDS.get(word)
        if kind is Kind.LLM and "._" in self.span.name and _PRIVATE.search(self.span.name):
            return Kind.STEP  # LlamaIndex marks helper methods of its models as model calls, too
        if kind is Kind.TOOL:
            return self._tool_kind()
        if kind is Kind.AGENT and _NODE not in self.attributes and _AGENT_NAME not in self.attributes:
            # Of OpenAI Agents, one without a name of its own stands for the whole trace rather than for an agent.
            if "openai_agents" in self.span.scope.name:
                return Kind.WORKFLOW
            return kind
        if kind is not None:
            return kind
        if word == "chain":
            return self._chain_kind()
        return self._inferred()

    def _tool_of(self) -> str:
        return self.name_in(_TOOL_NAME) or _SUFFIX.sub("", self.span.name.removeprefix("execute_tool "))

    def _inferred(self) -> Kind | None:
        if _TOOL_NAME in self.attributes:
            return self._tool_kind()
        if _AGENT_NAME in self.attributes:
            return Kind.AGENT
        if any(key.startswith(_LLM_LEAVES) for key in self.attributes) and (
            _SPAN_KIND not in self.attributes or any(key.startswith("llm.output_messages.") for key in self.attributes)
        ):
            return Kind.LLM
        if any(key.startswith("retrieval.documents.") for key in self.attributes):
            return Kind.RETRIEVAL
        if any(key.startswith("embedding.") for key in self.attributes):
            return Kind.EMBEDDING
        if semconv.OPERATION in self.attributes:
            return None
        return self._chain_kind()

    def _chain_kind(self) -> Kind:
        if self._is_named_graph():
            return Kind.AGENT
        if not self.span.parent_id or _RUN.match(self.span.name):
            return Kind.WORKFLOW
        return Kind.STEP

    def _tool_kind(self) -> Kind:
        name = self._tool_of()
        is_event = name == "error" and _TOOL_NAME not in self.attributes  # BeeAI: a tool's failure, inside its span
        if is_event or name == "(merged tools)" or _HANDOFF.match(name):
            return Kind.STEP
        return Kind.TOOL

    def _is_langchain(self) -> bool:
        return self.span.scope.name == "openinference.instrumentation.langchain"

    def _agent_of(self) -> str:
        named = self.name_in(_AGENT_NAME) or agent_in_metadata(self.get(_METADATA))
        if self.kind not in (Kind.AGENT, Kind.WORKFLOW) or (named and named == self.span.name):
            return named
        if semconv.AGENT_NAME in self.attributes:
            return ""
        if self.kind is Kind.AGENT:
            match = _NAMED.match(self.span.name)
            # Frameworks call spans by classes and methods, applications by their agents.
            is_own = "openinference" not in self.span.scope.name and "." not in self.span.name
            in_name = next(filter(None, match.groups())) if match else self.span.name * (is_own or self._is_langchain())
            return named or self.name_in(_NODE) or agent_named(in_name)
        if self._is_langchain() and not self.span.parent_id:
            return agent_named(self.span.name)
        return ""

    def _is_named_graph(self) -> bool:
        return bool(self.span.name) and agent_in_metadata(self.get(_METADATA)) == self.span.name


DIALECT = OpenInference


def _with_lost_results(given: Messages | None, request: Any) -> Messages | None:
    """Return the messages of the request if the flattened list lacks results of parallel calls."""
    parts = all_parts(given or ())
    answered = {part.id for part in parts if type(part) is ToolResponse}
    asked = {part.id for part in parts if type(part) is ToolRequest and part.id}
    if not answered or asked <= answered:
        return given
    whole = model_input(request)[0]
    known = {part.id for part in all_parts(whole or ()) if type(part) is ToolResponse}
    return whole if known > answered else given


def _is_end(output: Messages, whole: Messages) -> bool:
    return len(whole) > len(output) == 1 and whole[-1].text.strip() == output[0].text.strip() != ""


def _defined(fields: Fields) -> tuple[ToolDefinition, ...]:
    schema, name = fields.get("tool.json_schema", fields.get("definition")), fields.get("tool.name")
    if type(schema) is str and len(schema) <= _MAX_CACHED and (name is None or type(name) is str):
        description = fields.get("tool.description")
        return _definition(schema, name or "", description if type(description) is str else "")
    return tool_definitions([name]) or ()


@lru_cache(maxsize=1024)
def _definition(schema: str, name: str, description: str) -> tuple[ToolDefinition, ...]:
    definition = parsed(schema)
    if type(definition) is str:
        cut = as_dict(salvage(definition))
        inner = cut.get("function", cut)
        definition = {key: inner.get(key) for key in ("name", "description")} if type(inner) is dict and cut else None
    is_whole = "function" in as_dict(definition) or "name" in as_dict(definition)
    if name and not is_whole:
        definition = {"name": name, "description": description, "parameters": definition}
    if type(definition) is dict:
        return tool_definitions([definition]) or ()
    return ()


def _named_tools(value: Any) -> tuple[ToolDefinition, ...] | None:
    names = [name for item in as_list(value) if (name := identifier(item))]
    return tuple(ToolDefinition(name) for name in names) or None


def _counted_tools(value: Any) -> tuple[ToolDefinition, ...] | None:
    if type(value) is not str or _TOOL_COUNTS not in value:
        return None
    output = as_dict(parsed(value))
    counts = [as_dict(item).get(_TOOL_COUNTS) for item in (output, *output.values())]
    return next((_named_tools(list(count)) for count in counts if type(count) is dict), None)


def _of_server(part: Part) -> Part:
    if isinstance(part, ToolRequest):
        return replace(part, name=tool_of_server(part.name))
    return part
