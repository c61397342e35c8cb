"""Reads OpenInference (Arize, Phoenix): flattened messages, and ``input.value``/``output.value`` on every kind of span.

Its processors also write these keys onto spans of other instrumentations. There the original keys tell more (the copy
runs parallel tool results and thoughts together), and this dialect leaves the fields to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    CALLS,
    FINAL_ANSWERS,
    KINDS,
    Attributes,
    ByKind,
    Fields,
    Logs,
    Messages,
    RawSpan,
    Reading,
    Switch,
    agent_named,
    answered,
    as_dict,
    as_list,
    asked,
    count,
    crew_question,
    documents_in,
    each_part,
    from_repr,
    give_outcome,
    identifier,
    indexed,
    indexed_messages,
    keys,
    kinds,
    messages_of,
    metadata_sessions,
    model_input,
    model_output,
    parsed,
    prompted_tools,
    put_input,
    put_output,
    said_by_user,
    salvage,
    system_of,
    tool_arguments,
    tool_definitions,
    tool_of_server,
    tool_outcome,
    usage_in,
    without_protocol,
    without_task_mark,
)
from pandaeval_otel.model import Kind, Message, Part, Reasoning, Text, ToolDefinition, ToolRequest, ToolResponse, Usage
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
_LANGCHAIN_AGENT = re.compile(r'"lc_agent_name":\s*"([^"\\]+)"')
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
"""Finds the model in the repr of messages: Haystack agents whose model calls have no spans name it only there."""
_MAX_CACHED = 20_000
"""Most characters of a tool definition that is remembered: the same few recur with every model call."""
_MARKS = (
    "reasoning_content",
    '"summary_text"',
    '"thought":true',
    '"thought": true',
    '"reasoning": "',
    '"reasoning":"',
    '"thinking": "',
    '"thinking":"',
)
_HOSTED = re.compile(
    rf'"type":\s*"(?:{"|".join(sorted(CALLS))})"|"(?:grounding_?[mM]etadata|executable_?[cC]ode)":\s*\{{'
)
_IN_REPR = re.compile(r"""reasoning_content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)


class OpenInference(ByKind):
    """Reads ``openinference.*``, ``llm.*``, ``input.*`` and ``output.*``."""

    name = "openinference"
    priority = 50
    roots = frozenset({"openinference", "llm", "input", "output"})
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

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        kind = _kind_of(span)
        if kind is None:
            return None
        reading = self.read_as(kind, span)
        if span.scope.name == "openinference.instrumentation.claude_agent_sdk":
            reading.tool_name = tool_of_server(reading.tool_name)
            reading.output = each_part(reading.output, _of_server)
        return reading

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = _agent_of(span, reading.kind)
        if _METADATA in attributes and semconv.SESSION_ID not in attributes:
            reading.session_ids = metadata_sessions(attributes.get(_METADATA))
        parameters = attributes.get(_INVOCATION)
        if reading.kind is Kind.LLM and type(parameters) is str and '"metadata":' in parameters:
            # The metadata of a model request may name a session.
            request = as_dict(parsed(parameters))
            reading.session_ids = reading.session_ids or metadata_sessions(request.get("metadata"))

    def read_embedding(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.usage = _usage(attributes)

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        lists = indexed(attributes, _LISTS)
        if semconv.INPUT_MESSAGES not in attributes:
            _read_input(reading, attributes, lists)
        if semconv.OUTPUT_MESSAGES not in attributes:
            _read_output(reading, attributes, lists)
        reading.tools = _tools(reading, attributes, lists.get(_TOOLS, []))
        for value in (attributes.get(_OUTPUT), attributes.get(_INVOCATION)):  # the request tells it best
            if type(value) is str and _CONTINUES in value and (match := _PREVIOUS_ID.search(value)):
                reading.previous_response_id = match[1]
        reading.usage = _usage(attributes)
        reading.request_model = identifier(attributes.get("llm.request.model_name")) or identifier(
            attributes.get(_MODEL)
        )
        if not reading.request_model:
            reading.request_model = identifier(as_dict(parsed(attributes.get(_INVOCATION))).get("model"))
        reading.response_model = identifier(attributes.get("llm.response.model_name")) or reading.response_model

    read_agent = read_workflow = read_llm

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = _tool_of(span)
        if semconv.TOOL_ARGUMENTS not in attributes:
            reading.arguments = tool_arguments(attributes.get(_INPUT), attributes.get("tool.parameters"))
        if semconv.TOOL_RESULT not in attributes:
            give_outcome(reading, tool_outcome(attributes.get(_OUTPUT)))
        if reading.arguments and type(reading.arguments.value) is str:
            # LangGraph writes the one argument of a tool without its name; the model's request for this call has it.
            metadata = attributes.get(_METADATA)
            if reading.tool_call_id or (type(metadata) is str and '"langgraph_node"' in metadata):
                reading.arguments = None

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        documents = []
        for fields in indexed(attributes, frozenset({_DOCUMENTS})).get(_DOCUMENTS, ()):
            document = {path.removeprefix("document."): value for path, value in fields.items()}
            if "metadata" in document:
                document["metadata"] = parsed(document["metadata"])
            documents.append(document)
        reading.documents = tuple(documents) or documents_in(attributes.get(_OUTPUT), "documents")


DIALECT = OpenInference()


def _read_input(reading: Reading, attributes: Attributes, lists: Mapping[str, list[Fields]]) -> None:
    reading.input = without_task_mark(indexed_messages(lists.get(_GIVEN), "user"))
    if reading.input is None and _PROMPTS in lists:
        texts = [str(text) for fields in lists[_PROMPTS] for text in fields.values()]
        reading.input = said_by_user("\n".join(texts))
    if reading.input is None:
        read = model_input if reading.kind is Kind.LLM else asked
        put_input(reading, read(attributes.get(_INPUT)))
    if reading.input is None and _CREW_TASKS in attributes:
        # The tasks' descriptions of a CrewAI kickoff, with the crew's inputs filled in.
        text = crew_question(attributes[_CREW_TASKS])
        for name, value in as_dict(parsed(attributes.get("crew_inputs"))).items():
            text = text.replace(f"{{{name}}}", str(value))
        reading.input = said_by_user(text or None)
    reading.system = system_of(reading.input)


def _read_output(reading: Reading, attributes: Attributes, lists: Mapping[str, list[Fields]]) -> None:
    value = attributes.get(_OUTPUT)
    text = value if type(value) is str else ""
    of_model = reading.kind is Kind.LLM
    if of_model or _OUTPUT not in attributes:
        reason = identifier(attributes.get("llm.finish_reason"))
        reading.output = indexed_messages(lists.get(_ANSWERS) or lists.get(_CHOICES), "assistant", reason)
        if text and reading.output:
            reading.output = without_protocol(with_thoughts(_with_hosted(reading.output, text), text))
        if match := _RESPONSE_ID.match(text):
            reading.response_id = match[1]
    if reading.output is None:
        put_output(reading, (model_output if of_model else answered)(value))
        if match := _MODEL_IN_REPR.search(text):
            reading.response_model = match[1]
    whole = None if of_model else indexed_messages(lists.get(_ANSWERS), "assistant")
    if whole and (reading.output is None or _is_end(reading.output, whole)):
        reading.output = whole


def _is_end(output: Messages, whole: Messages) -> bool:
    """Returns whether ``output`` is the answer alone, at the end of a list of all that the agent said."""
    return len(whole) > len(output) == 1 and whole[-1].text.strip() == output[0].text.strip() != ""


def _usage(attributes: Attributes) -> Usage | None:
    details = "llm.token_count.prompt_details"
    return usage_in(
        attributes,
        "llm.token_count.prompt",
        "llm.token_count.completion",
        f"{details}.cache_read" if count(attributes.get(f"{details}.cache_read")) else f"{details}.cache_input",
        f"{details}.cache_write",
        "llm.token_count.completion_details.reasoning",
    )


def _tools(reading: Reading, attributes: Attributes, listed: list[Fields]) -> tuple[ToolDefinition, ...] | None:
    known = tool_definitions(attributes.get(semconv.TOOL_DEFINITIONS)) or ()
    # Some emitters write null for the parameters under the conventions' own key.
    if listed and all(tool.parameters is None for tool in known):
        tools = [tool for fields in listed for tool in _defined(fields) if tool.name not in FINAL_ANSWERS]
        return tuple(tools) or None
    if _SMOLAGENTS_TOOLS in attributes:
        return _named_tools(attributes[_SMOLAGENTS_TOOLS])
    return prompted_tools(reading.system) or _counted_tools(attributes.get(_OUTPUT))


def _defined(fields: Fields) -> tuple[ToolDefinition, ...]:
    schema, name = fields.get("tool.json_schema"), fields.get("tool.name")
    if type(schema) is str and len(schema) <= _MAX_CACHED and (name is None or type(name) is str):
        description = fields.get("tool.description")
        return _definition(schema, name or "", description if type(description) is str else "")
    return tool_definitions([name]) or ()


@lru_cache(maxsize=1024)
def _definition(schema: str, name: str, description: str) -> tuple[ToolDefinition, ...]:
    """Reads a whole definition, or only the schema of the parameters where the name is beside it. The parameters of a
    definition that was cut short are left out: half a schema is another schema."""
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
    names = [name for item in as_list(value) if (name := identifier(item)) and name not in FINAL_ANSWERS]
    return tuple(ToolDefinition(name) for name in names) or None


def _counted_tools(value: Any) -> tuple[ToolDefinition, ...] | None:
    """Returns the tools whose calls a Haystack agent counts: all that it has."""
    if type(value) is not str or _TOOL_COUNTS not in value:
        return None
    output = as_dict(parsed(value))
    counts = [as_dict(item).get(_TOOL_COUNTS) for item in (output, *output.values())]
    return next((_named_tools(list(count)) for count in counts if type(count) is dict), None)


def with_thoughts(output: Messages, response: str) -> Messages:
    """Returns ``output`` preceded by the thoughts in ``response``, the same answer's raw body as JSON, where some
    instrumentations leave them. A text that only repeats a thought is dropped."""
    if not any(mark in response for mark in _MARKS):
        return output
    if any(type(part) is Reasoning for part in all_parts(output)):
        return output
    thoughts = _thoughts(response)
    if not thoughts:
        return output
    known = {thought.text for thought in thoughts}
    head, *rest = output
    others = [part for part in head.parts if not (type(part) is Text and part.text in known)]
    return (head.with_parts(*thoughts, *others), *rest)


def _with_hosted(output: Messages, response: str) -> Messages:
    """Returns the messages in ``response``, the same answer's raw body, where it tells of tools that the provider ran:
    flattened messages leave most of these out, and keep no order."""
    if _HOSTED.search(response) is None:
        return output
    parts = all_parts(_answer_in(parsed(response)))  # items are parts of one answer
    if _calls_and_results(parts) < _calls_and_results(all_parts(output)):
        return output
    return (Message("assistant", tuple(parts), output[-1].finish_reason),)


def _calls_and_results(parts: list[Part]) -> int:
    return sum(type(part) in (ToolRequest, ToolResponse) for part in parts)


def _thoughts(response: str) -> tuple[Reasoning, ...]:
    body = parsed(response)
    raw = as_dict(body).get("raw")
    if type(raw) is str:  # smolagents keep the client's response object as its repr
        match = _IN_REPR.search(raw)
        text = as_dict(from_repr(f"Thoughts(text={match[1]})")).get("text") if match else None
        if type(text) is str:
            return (Reasoning(text),)
        return ()
    return tuple(part for part in all_parts(_answer_in(body)) if type(part) is Reasoning and part.text)


def _answer_in(body: Any) -> Messages:
    items = as_dict(body).get("output")  # of OpenAI's Responses API
    return messages_of(items if type(items) is list else body, "assistant") or ()


def _kind_of(span: RawSpan) -> Kind | None:
    """Returns the span's kind; ``None`` when nothing on it is OpenInference's or nothing tells the kind."""
    attributes = span.attributes
    stated = attributes.get(_SPAN_KIND)
    if (
        stated is None
        and not span.scope.name.startswith("openinference.")
        and not (_INPUT in attributes or _OUTPUT in attributes)
        and not any(key.startswith(_LLM_LEAVES) for key in attributes)
    ):
        return None
    word = stated.lower() if type(stated) is str else ""
    kind = _KINDS.get(word)
    if kind is Kind.LLM and _PRIVATE.search(span.name):
        return Kind.STEP  # LlamaIndex marks helper methods of its models as model calls, too
    if kind is Kind.TOOL:
        return _tool_kind(span)
    if kind is Kind.AGENT and _NODE not in attributes and _AGENT_NAME not in attributes:
        # Of OpenAI Agents, one without a name of its own stands for the whole trace rather than for an agent.
        if "openai_agents" in span.scope.name:
            return Kind.WORKFLOW
        return kind
    if kind is not None:
        return kind
    if word == "chain":
        return _chain_kind(span)
    return _inferred(span)


def _tool_of(span: RawSpan) -> str:
    """Returns the name of the tool that a TOOL span calls."""
    return identifier(span.attributes.get(_TOOL_NAME)) or _SUFFIX.sub("", span.name.removeprefix("execute_tool "))


def _inferred(span: RawSpan) -> Kind | None:
    """Infers the kind of a span that lost it to the SDK's attribute limit, or whose instrumentation did not know it."""
    attributes = span.attributes
    if _TOOL_NAME in attributes:
        return _tool_kind(span)
    if _AGENT_NAME in attributes:
        return Kind.AGENT
    if any(key.startswith(_LLM_LEAVES) for key in attributes) and (
        _SPAN_KIND not in attributes or any(key.startswith("llm.output_messages.") for key in attributes)
    ):
        return Kind.LLM
    if any(key.startswith("retrieval.documents.") for key in attributes):
        return Kind.RETRIEVAL
    if any(key.startswith("embedding.") for key in attributes):
        return Kind.EMBEDDING
    if semconv.OPERATION in attributes:
        return None
    return _chain_kind(span)


def _chain_kind(span: RawSpan) -> Kind:
    if _is_named_graph(span):
        return Kind.AGENT
    if not span.parent_id or _RUN.match(span.name):
        return Kind.WORKFLOW
    return Kind.STEP


def _tool_kind(span: RawSpan) -> Kind:
    name = _tool_of(span)
    if name == "(merged tools)" or _HANDOFF.match(name):
        return Kind.STEP
    return Kind.TOOL


def _is_langchain(span: RawSpan) -> bool:
    return span.scope.name == "openinference.instrumentation.langchain"


def _agent_of(span: RawSpan, kind: Kind | None) -> str:
    """Returns the name of the agent whose span this is, or in which it is; ``""`` if nothing names it."""
    attributes = span.attributes
    named = identifier(attributes.get(_AGENT_NAME)) or _agent_in_metadata(attributes.get(_METADATA))
    if kind not in (Kind.AGENT, Kind.WORKFLOW) or (named and named == span.name):
        return named
    if semconv.AGENT_NAME in attributes:
        return ""
    if kind is Kind.AGENT:
        match = _NAMED.match(span.name)
        in_name = next(filter(None, match.groups())) if match else span.name * _is_langchain(span)
        return named or identifier(attributes.get(_NODE)) or agent_named(in_name)
    if _is_langchain(span) and not span.parent_id:
        return agent_named(span.name)
    return ""


def _of_server(part: Part) -> Part:
    if isinstance(part, ToolRequest):
        return replace(part, name=tool_of_server(part.name))
    return part


def _is_named_graph(span: RawSpan) -> bool:
    """Returns whether the span has the name that LangChain puts into the metadata of all of an agent's spans: then it
    is the agent's own."""
    return bool(span.name) and _agent_in_metadata(span.attributes.get(_METADATA)) == span.name


def _agent_in_metadata(metadata: Any) -> str:
    match = _LANGCHAIN_AGENT.search(metadata) if type(metadata) is str else None
    if match:
        return identifier(match[1])
    return ""
