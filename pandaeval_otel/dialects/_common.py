"""Readers that several dialects share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base.recent import Recent
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._message_edits import Messages
from pandaeval_otel.dialects._messages import MaybeCut
from pandaeval_otel.dialects._reading import Reading, kinds
from pandaeval_otel.dialects._tool_values import Outcome
from pandaeval_otel.dialects._values import Object, as_list, count, dicts_in, first, hidden, identifier, parsed
from pandaeval_otel.model import Captured, Kind, Message, Part, Text, ToolDefinition, Usage
from pandaeval_otel.model.raw import STATUS_ERROR, STATUS_OK, RawLog, RawSpan, Resource

SessionIds = tuple[tuple[int, str], ...]
Keys = str | tuple[str, ...]

_DETAILS = (semconv.USAGE_CACHE_READ, semconv.USAGE_CACHE_WRITE, semconv.USAGE_REASONING)
_DETAIL_KEYS = frozenset().union(*_DETAILS)
_DECLARED = ("tools", "function_tools", "function_declarations", "functionDeclarations")
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema", "schema")

KINDS = kinds(
    agent="agent",
    workflow="workflow",
    llm="llm",
    tool="tool",
    retrieval="retriever",
    embedding="embedding",
    guardrail="guardrail",
    evaluation="evaluator",
)
"""Kinds by the words that most vendors have for them."""
MAX_ERROR = 500
"""Maximum length of an error text, in characters: enough for the cause, too short for a conversation."""

CUT = ("messages were cut short by a length limit",)
SESSION_WORDS = ("session_id", "conversation_id", "thread_id", "sessionId", "conversationId", "threadId", "chat_id")
"""Names under which applications put the id of a conversation into free metadata, best first."""
USER_WORDS = ("user_id", "userId")
_LANGCHAIN_AGENT = re.compile(r'"lc_agent_name":\s*"([^"\\]+)"')
_GENERIC_NAMES = frozenset(
    {
        *("agent", "agents", "agent_executor", "agentexecutor", "langgraph", "runnablesequence", "runnableagent"),
        *("runnablelambda", "runnableparallel", "call_model", "model", "functionagent", "reactagent"),
        *("agentworkflow", "agent workflow", "team", "workflow", "chain", "llmchain", "pipeline", "crew"),
    }
)


def session_candidates(attributes: Mapping[str, Any], resource: Resource, ranks: Mapping[str, int]) -> SessionIds:
    """Return ``(rank, id)`` for each key of ``ranks`` on the span or, ten ranks lower, its resource."""
    found: SessionIds = ()
    for key, rank in ranks.items():
        if key in attributes and (name := session_id(attributes[key])):
            found = (*found, (rank, name))
        if resource.names_session and key in resource.attributes and (name := session_id(resource.attributes[key])):
            found = (*found, (rank + semconv.RANK_RESOURCE, name))
    return found


def session_id(value: Any) -> str:
    """Return a session id; ``""`` for placeholders and OpenAI response ids, which change with every call."""
    found = identifier(value)
    if found.startswith("resp_"):
        return ""
    return found


def one_session(value: Any) -> SessionIds:
    name = session_id(value)
    if name:
        return ((semconv.RANK_DIALECT, name),)
    return ()


def usage_of(attributes: Mapping[str, Any]) -> Usage | None:
    """Return the tokens in ``gen_ai.usage.*`` of any release, or ``None``."""
    details = () if _DETAIL_KEYS.isdisjoint(attributes) else _DETAILS
    return usage_in(attributes, semconv.USAGE_INPUT, semconv.USAGE_OUTPUT, *details)


def usage_in(
    source: Any, spent: Keys, made: Keys, cache_read: Keys = (), cache_write: Keys = (), thought: Keys = ()
) -> Usage | None:
    """Return the tokens from the first key per side that holds a number.

    ``None`` if ``spent`` and ``made`` are missing.
    """
    if type(source) is not dict and not isinstance(source, Mapping):
        return None
    given, answered = _tokens(source, spent), _tokens(source, made)
    if given is None and answered is None:
        return None
    details = [(_tokens(source, keys) or 0) if keys else 0 for keys in (cache_read, cache_write, thought)]
    return Usage(given or 0, answered or 0, *details)


def _tokens(source: Mapping[str, Any], keys: Keys) -> int | None:
    for key in (keys,) if type(keys) is str else keys:
        if (value := source.get(key)) is not None and (found := count(value)) is not None:
            return found
    return None


def error_of(span: RawSpan, logs: Sequence[RawLog] = ()) -> str | None:
    """Return a short error text if the span failed, else ``None``.

    A span failed if its status is ERROR, or unset with an ``error.type`` or a recorded exception.
    """
    failed = span.status_code == STATUS_ERROR
    error_type = span.attributes.get(semconv.ERROR_TYPE)
    if span.status_code == STATUS_OK or not (failed or error_type or span.events or logs):
        return None
    text = (failed and span.status_message) or _raised(span, logs) or error_type or (failed and "error")
    if text:
        return str(text)[:MAX_ERROR]
    return None


def _raised(span: RawSpan, logs: Sequence[RawLog]) -> str:
    recorded = [event.attributes for event in span.events if event.name == semconv.EXCEPTION]
    recorded += [log.attributes for log in logs if log_name(log) in semconv.EXCEPTION_EVENTS]
    if not recorded:
        return ""
    words = (recorded[0].get("exception.type"), recorded[0].get(semconv.EXCEPTION_MESSAGE))
    return ": ".join(str(word) for word in words if word) or semconv.EXCEPTION


def tool_definitions(value: Any) -> tuple[ToolDefinition, ...] | None:
    """Return the tools in a list, or in its JSON text. ``None`` if absent or unreadable, ``()`` if empty.

    Accepts OTel, OpenAI, Anthropic, Gemini and MCP definitions, JSON strings and names.
    """
    if type(value) is str:
        return _TOOLS(value)
    return _tool_definitions(value)


def _tool_definitions(value: Any) -> tuple[ToolDefinition, ...] | None:
    value = parsed(value)
    if type(value) is dict:
        value = first(value, _DECLARED) or [value]
    if not isinstance(value, (list, tuple)):
        return None
    tools: list[ToolDefinition] = []
    for item in value:
        tools += _definitions(parsed(item))
    if tools or not value:
        return tuple(tools)
    return None


def _definitions(item: Any) -> Iterable[ToolDefinition]:
    if type(item) is list:
        return _tool_definitions(item) or ()
    if type(item) is not dict:
        tool = ToolDefinition(identifier(item))
    else:
        if type(item.get("data")) is dict:  # Haystack: {"type": class, "data": …}
            item = item["data"]
        declared = first(item, _DECLARED)
        if isinstance(declared, (list, tuple)):
            return _tool_definitions(declared) or ()
        tool = _definition(item)
    if tool.name:
        return (tool,)
    return ()


_TOOLS = Recent(_tool_definitions)


def _definition(item: Object) -> ToolDefinition:
    for wrapper in ("function", "toolSpec"):
        if type(item.get(wrapper)) is dict:
            item = {**item, **item[wrapper]}
    parameters = _parameters(parsed(first(item, _SCHEMAS)))
    name, kind, description = identifier(item.get("name")), item.get("type"), item.get("description")
    if not name and kind != "function":
        name = identifier(kind)
    annotations = item.get("annotations")
    hints = annotations if type(annotations) is dict else item
    read_only = hints.get("readOnlyHint")
    if not isinstance(read_only, bool):
        read_only = False if hints.get("destructiveHint") is True else None
    return ToolDefinition(name, description if type(description) is str else "", parameters, read_only)


def _parameters(found: Any) -> Any:
    if type(found) is not dict:
        return found
    if set(found) == {"json"}:  # Bedrock: {"inputSchema": {"json": …}}
        return found["json"]
    if found and all(type(each) is dict and type(each.get("type")) is str for each in found.values()):
        return {"type": "object", "properties": found}  # DSPy: schemas by argument
    return found


def agent_named(name: str) -> str:
    """Return ``name``; ``""`` for a framework's class or node name."""
    if name.lower() in _GENERIC_NAMES:
        return ""
    return identifier(name)


def system_of(messages: Messages | None) -> str | None:
    found: list[str] = []
    for message in messages or ():
        if message.role == "system" and (text := message.text):
            found.append(text)  # noqa: PERF401 - mostly there is none, and a comprehension has a frame of its own
    if found:
        return "\n".join(found)
    return None


def said_by_user(text: Any) -> Messages | None:
    if type(text) is str and not hidden(text):
        return one_message("user", Text(text))
    return None


def one_message(role: str, *parts: Part, reason: str = "") -> Messages | None:
    if parts:
        return (Message(role, parts, reason),)
    return None


def metadata_sessions(metadata: Any) -> SessionIds:
    """Return ``(rank, id)`` from free metadata (a map or its JSON) that names a conversation."""
    if type(metadata) is str and not any(word in metadata for word in SESSION_WORDS):
        return ()
    found = parsed(metadata)
    if not isinstance(found, Mapping):
        return ()
    return next((session for word in SESSION_WORDS if (session := one_session(found.get(word)))), ())


def agent_in_metadata(metadata: Any) -> str:
    """Return the agent's name in LangChain's metadata of a run."""
    match = _LANGCHAIN_AGENT.search(metadata) if type(metadata) is str else None
    if match:
        return identifier(match[1])
    return ""


def prefixed_sessions(attributes: Mapping[str, Any], prefix: str) -> SessionIds:
    """Return ``(rank, id)`` from an attribute ``prefix`` + word that names a conversation."""
    for word in SESSION_WORDS:
        if (value := attributes.get(prefix + word)) is not None and (session := one_session(parsed(value))):
            return session
    return ()


def prefixed_user(attributes: Mapping[str, Any], prefix: str) -> str:
    for word in USER_WORDS:
        if (value := attributes.get(prefix + word)) is not None and (name := identifier(parsed(value))):
            return name
    return ""


def read_metadata(reading: Reading, attributes: Mapping[str, Any], *prefixes: str) -> None:
    for prefix in prefixes:
        reading.session_ids = reading.session_ids or prefixed_sessions(attributes, prefix)
        reading.user_id = reading.user_id or prefixed_user(attributes, prefix)


def captured(value: Any) -> Captured | None:
    """Return ``value`` parsed; ``None`` if absent or a placeholder."""
    if hidden(value):
        return None
    return Captured(parsed(value))


def documents_in(value: Any, *names: str) -> tuple[Any, ...]:
    """Return retrieved documents: ``value`` or its first member with these ``names``."""
    documents = parsed(value)
    if type(documents) is dict:
        documents = first(documents, names)
    return tuple(as_list(documents))


def crew_question(tasks: Any) -> str:
    """Return the task descriptions of a CrewAI crew, a line per task."""
    texts = [task.get("description") for task in dicts_in(tasks)]
    return "\n".join(text for text in texts if type(text) is str)


def put_input(reading: Reading, messages: MaybeCut) -> None:
    reading.input, cut = messages
    if cut:
        reading.notes = CUT


def put_output(reading: Reading, messages: MaybeCut) -> None:
    reading.output, cut = messages
    if cut:
        reading.notes = CUT


def give_outcome(reading: Reading, outcome: Outcome) -> None:
    reading.result = outcome.result
    reading.tool_call_id = reading.tool_call_id or outcome.call_id
    reading.tool_name = reading.tool_name or outcome.name
    if outcome.failed:
        give_error(reading, outcome.result and outcome.result.value)


def give_error(reading: Reading, text: Any) -> None:
    reading.error = str(text or "tool error")[:MAX_ERROR]


def drop_unnamed(reading: Reading) -> None:
    """Drop arguments that are a single text. LangChain omits the name, which the model's request has."""
    if reading.arguments and type(reading.arguments.value) is str and reading.tool_call_id:
        reading.arguments = None


def run_kind(parentless: bool) -> Kind:
    if parentless:
        return Kind.WORKFLOW
    return Kind.STEP
