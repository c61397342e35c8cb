"""Reads OpenInference (Arize, Phoenix): flattened messages, and ``input.value``/``output.value`` on every kind of span.

Its processors also write these keys onto spans of other instrumentations. There the original keys tell more (the copy
runs parallel tool results and thoughts together), and this dialect leaves the fields to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import (
    CUT,
    SessionIds,
    crew_question,
    give_outcome,
    metadata_sessions,
    said_by_user,
    system_of,
    tool_definitions,
)
from pandaeval_otel.dialects._indexed import Fields, indexed, indexed_messages
from pandaeval_otel.dialects._messages import Messages, messages_of
from pandaeval_otel.dialects._openinference_kinds import INPUT, METADATA, OUTPUT, agent_of, kind_of, tool_of
from pandaeval_otel.dialects._prompted import prompted_tools, without_protocol, without_task_mark
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._runs import answered, asked, model_input, model_output
from pandaeval_otel.dialects._salvage import salvage
from pandaeval_otel.dialects._tool_values import FINAL_ANSWERS, tool_arguments, tool_of_server, tool_outcome
from pandaeval_otel.dialects._values import as_list, count, first, identifier, parsed
from pandaeval_otel.model import Kind, Message, Part, Reasoning, Text, ToolDefinition, ToolRequest, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

_GIVEN, _ANSWERS, _TOOLS = "llm.input_messages", "llm.output_messages", "llm.tools"
_PROMPTS, _CHOICES, _DOCUMENTS = "llm.prompts", "llm.choices", "retrieval.documents"
_LISTS = frozenset({_GIVEN, _ANSWERS, _TOOLS, _PROMPTS, _CHOICES})
_TALKS = frozenset({Kind.LLM, Kind.AGENT, Kind.WORKFLOW})
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
_IN_REPR = re.compile(r"""reasoning_content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)


class OpenInference(Dialect):
    """Reads ``openinference.*``, ``llm.*``, ``input.*`` and ``output.*``."""

    name = "openinference"
    priority = 50
    roots = frozenset({"openinference", "llm", "input", "output"})
    scopes = ("openinference.",)

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        kind = kind_of(span)
        if kind is None:
            return None
        attributes = span.attributes
        reading = Reading(kind=kind, agent_name=agent_of(span, kind))
        if semconv.SESSION_ID not in attributes and METADATA in attributes:
            reading.session_ids = metadata_sessions(attributes[METADATA])
        if kind is Kind.LLM and not reading.session_ids and _INVOCATION in attributes:
            reading.session_ids = _parameter_sessions(attributes[_INVOCATION])
        if kind in _TALKS:
            _read_talk(reading, attributes)
        elif kind is Kind.TOOL:
            _read_tool(reading, span)
        elif kind is Kind.RETRIEVAL:
            _read_retrieval(reading, attributes)
        elif kind is Kind.EMBEDDING:
            reading.request_model = identifier(first(attributes, ("embedding.model_name", _MODEL)))
            reading.usage = _usage(attributes)
        if span.scope.name == "openinference.instrumentation.claude_agent_sdk":
            reading.tool_name = tool_of_server(reading.tool_name)
            reading.output = _with_own_tool_names(reading.output)
        return reading


DIALECT = OpenInference()


def _read_talk(reading: Reading, attributes: Mapping[str, Any]) -> None:
    lists = indexed(attributes, _LISTS)
    if semconv.INPUT_MESSAGES not in attributes:
        _read_input(reading, attributes, lists)
    if semconv.OUTPUT_MESSAGES not in attributes:
        _read_output(reading, attributes, lists)
    if _TOOLS in lists and not _has_schemas(attributes.get(semconv.TOOL_DEFINITIONS)):
        found = [tool for fields in lists[_TOOLS] for tool in _tools(fields) if tool.name not in FINAL_ANSWERS]
        reading.tools = tuple(found) or None
    elif _SMOLAGENTS_TOOLS in attributes:
        reading.tools = _named_tools(attributes[_SMOLAGENTS_TOOLS])
    else:
        reading.tools = prompted_tools(reading.system) or _counted_tools(attributes.get(OUTPUT))
    reading.previous_response_id = _previous_id(attributes)
    reading.usage = _usage(attributes)
    named = identifier(attributes.get("llm.request.model_name")) or identifier(attributes.get(_MODEL))
    reading.request_model = named or _model_in(attributes.get(_INVOCATION))
    reading.response_model = identifier(attributes.get("llm.response.model_name")) or reading.response_model


def _read_input(reading: Reading, attributes: Mapping[str, Any], lists: Mapping[str, list[Fields]]) -> None:
    reading.input = without_task_mark(indexed_messages(lists.get(_GIVEN), "user"))
    if reading.input is None and _PROMPTS in lists:
        texts = [str(text) for fields in lists[_PROMPTS] for text in fields.values()]
        reading.input = said_by_user("\n".join(texts))
    if reading.input is None and INPUT in attributes:
        read = model_input if reading.kind is Kind.LLM else asked
        reading.input, cut = read(attributes[INPUT])
        reading.notes = CUT if cut else ()
    if reading.input is None and _CREW_TASKS in attributes:
        reading.input = _crew_input(attributes)
    reading.system = system_of(reading.input)


def _read_output(reading: Reading, attributes: Mapping[str, Any], lists: Mapping[str, list[Fields]]) -> None:
    value = attributes.get(OUTPUT)
    if reading.kind is Kind.LLM or OUTPUT not in attributes:
        reason = identifier(attributes.get("llm.finish_reason"))
        reading.output = indexed_messages(lists.get(_ANSWERS) or lists.get(_CHOICES), "assistant", reason)
        if type(value) is str and reading.output:
            reading.output = without_protocol(with_thoughts(reading.output, value))
        if type(value) is str and (match := _RESPONSE_ID.match(value)):
            reading.response_id = match[1]
    if reading.output is None and OUTPUT in attributes:
        read = model_output if reading.kind is Kind.LLM else answered
        reading.output, cut = read(value)
        reading.notes = CUT if cut else reading.notes
        if type(value) is str and (match := _MODEL_IN_REPR.search(value)):
            reading.response_model = match[1]
    told = indexed_messages(lists.get(_ANSWERS), "assistant") if reading.kind is not Kind.LLM else None
    if told and (reading.output is None or _ends_alike(told, reading.output)):
        reading.output = told


def _ends_alike(told: Messages, output: Messages) -> bool:
    """Returns whether a list of all that an agent said ends with ``output``, its answer alone."""
    return len(told) > len(output) == 1 and told[-1].text.strip() == output[0].text.strip() != ""


def _with_own_tool_names(output: Messages | None) -> Messages | None:
    return output and tuple(
        Message(message.role, tuple(_with_own_name(part) for part in message.parts), message.finish_reason)
        for message in output
    )


def _with_own_name(part: Part) -> Part:
    return ToolRequest(tool_of_server(part.name), part.arguments, part.id) if type(part) is ToolRequest else part


def _previous_id(attributes: Mapping[str, Any]) -> str:
    """Returns the response that a call of OpenAI's Responses API continues, from its request or its response."""
    for value in (attributes.get(_INVOCATION), attributes.get(OUTPUT)):
        if type(value) is str and _CONTINUES in value and (match := _PREVIOUS_ID.search(value)):
            return match[1]
    return ""


def _parameter_sessions(parameters: Any) -> SessionIds:
    """Returns the session that the metadata of a model request name."""
    if type(parameters) is not str or '"metadata":' not in parameters:
        return ()
    found = parsed(parameters)
    return metadata_sessions(found.get("metadata")) if type(found) is dict else ()


def _model_in(parameters: Any) -> str:
    found = parsed(parameters)
    return identifier(found.get("model")) if type(found) is dict else ""


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    spent, made = _tokens(attributes, "llm.token_count.prompt"), _tokens(attributes, "llm.token_count.completion")
    if spent is None and made is None:
        return None
    return Usage(
        input=spent or 0,
        output=made or 0,
        cache_read=_tokens(attributes, "llm.token_count.prompt_details.cache_read")
        or _tokens(attributes, "llm.token_count.prompt_details.cache_input")
        or 0,
        cache_write=_tokens(attributes, "llm.token_count.prompt_details.cache_write") or 0,
        reasoning=_tokens(attributes, "llm.token_count.completion_details.reasoning") or 0,
    )


def _tokens(attributes: Mapping[str, Any], key: str) -> int | None:
    value = attributes.get(key)
    return None if value is None else count(value)


def _tools(fields: Fields) -> tuple[ToolDefinition, ...]:
    schema, name = fields.get("tool.json_schema"), fields.get("tool.name")
    if type(schema) is str and len(schema) <= _MAX_CACHED and (name is None or type(name) is str):
        description = fields.get("tool.description")
        return _definition(schema, name or "", description if type(description) is str else "")
    return tool_definitions([name]) or ()


@lru_cache(maxsize=1024)
def _definition(schema: str, name: str, description: str) -> tuple[ToolDefinition, ...]:
    """Reads a whole definition, or only the schema of the parameters where the name stands beside it. The parameters of
    a definition that was cut short are left out: half a schema is another schema."""
    found = parsed(schema)
    if type(found) is str:
        found = _without_parameters(salvage(found))
    if name and not (type(found) is dict and ("function" in found or "name" in found)):
        return tool_definitions([{"name": name, "description": description, "parameters": found}]) or ()
    return tool_definitions([found]) or () if type(found) is dict else ()


def _without_parameters(cut: Any) -> Any:
    inner = cut.get("function", cut) if type(cut) is dict else None
    return {key: inner.get(key) for key in ("name", "description")} if type(inner) is dict else None


def _has_schemas(definitions: Any) -> bool:
    """Returns whether the conventions' own key tells the parameters of any tool: some emitters write null there."""
    return any(tool.parameters is not None for tool in tool_definitions(definitions) or ())


def _named_tools(value: Any) -> tuple[ToolDefinition, ...] | None:
    names = [name for item in as_list(value) if (name := identifier(item)) and name not in FINAL_ANSWERS]
    return tuple(ToolDefinition(name) for name in names) or None


def _counted_tools(value: Any) -> tuple[ToolDefinition, ...] | None:
    """Returns the tools whose calls a Haystack agent counts: all that it has."""
    if type(value) is not str or _TOOL_COUNTS not in value:
        return None
    found = parsed(value)
    members = [found, *found.values()] if type(found) is dict else []
    counts = [item[_TOOL_COUNTS] for item in members if type(item) is dict and type(item.get(_TOOL_COUNTS)) is dict]
    return _named_tools(list(counts[0])) if counts else None


def _crew_input(attributes: Mapping[str, Any]) -> Messages | None:
    """Returns the tasks' descriptions of a CrewAI kickoff, with the crew's inputs filled in."""
    text = crew_question(attributes[_CREW_TASKS])
    inputs = parsed(attributes.get("crew_inputs"))
    for name, value in inputs.items() if type(inputs) is dict else ():
        text = text.replace(f"{{{name}}}", str(value))
    return said_by_user(text) if text else None


def _read_tool(reading: Reading, span: RawSpan) -> None:
    attributes = span.attributes
    reading.tool_name = tool_of(span)
    reading.tool_call_id = identifier(first(attributes, ("tool_call.id", "tool.call_id", "tool.id")))
    if semconv.TOOL_ARGUMENTS not in attributes:
        reading.arguments = tool_arguments(attributes.get(INPUT), attributes.get("tool.parameters"))
    if semconv.TOOL_RESULT not in attributes and OUTPUT in attributes:
        give_outcome(reading, tool_outcome(attributes[OUTPUT]))
    if reading.arguments and type(reading.arguments.value) is str:
        # LangGraph writes the one argument of a tool without its name; the model's request for this call has it.
        metadata = attributes.get(METADATA)
        if reading.tool_call_id or (type(metadata) is str and '"langgraph_node"' in metadata):
            reading.arguments = None


def _read_retrieval(reading: Reading, attributes: Mapping[str, Any]) -> None:
    lists = indexed(attributes, frozenset({_DOCUMENTS}))
    reading.documents = tuple(_document(fields) for fields in lists.get(_DOCUMENTS, ()))
    if not reading.documents:
        found = parsed(attributes.get(OUTPUT))
        reading.documents = tuple(as_list(found.get("documents") if type(found) is dict else found))
    reading.input = asked(attributes.get(INPUT))[0]


def _document(fields: Fields) -> dict[str, Any]:
    found = {path.removeprefix("document."): value for path, value in fields.items()}
    if "metadata" in found:
        found["metadata"] = parsed(found["metadata"])
    return found


def with_thoughts(output: Messages, response: str) -> Messages:
    """Returns ``output`` preceded by the thoughts in ``response``, the same answer's raw body as JSON, where some
    instrumentations leave them. A text that only repeats a thought is dropped."""
    if not any(mark in response for mark in _MARKS):
        return output
    if any(type(part) is Reasoning for message in output for part in message.parts):
        return output
    thoughts = _thoughts(response)
    if not thoughts:
        return output
    known = {thought.text for thought in thoughts}
    first, *rest = output
    said = tuple(part for part in first.parts if not (type(part) is Text and part.text in known))
    return (Message(first.role, (*thoughts, *said), first.finish_reason), *rest)


def _thoughts(response: str) -> tuple[Reasoning, ...]:
    body = parsed(response)
    raw = body.get("raw") if type(body) is dict else None
    if type(raw) is str:  # smolagents keep the client's response object as its repr
        match = _IN_REPR.search(raw)
        said = from_repr(f"Thoughts(text={match[1]})") if match else None
        return (Reasoning(said["text"]),) if type(said) is dict and type(said.get("text")) is str else ()
    items = body.get("output") if type(body) is dict else None  # of OpenAI's Responses API
    found = messages_of(items if type(items) is list else body, "assistant") or ()
    return tuple(part for message in found for part in message.parts if type(part) is Reasoning and part.text)
