"""Reads ``gen_ai.*`` and ``mcp.*`` of the OpenTelemetry GenAI conventions, from 1.26 on, including old names.

Content may be JSON text or structured, on spans, span events or log records. Provider names are ignored.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    CUT,
    Attributes,
    Dialect,
    EventContent,
    Logs,
    Messages,
    RawSpan,
    Reading,
    Switch,
    as_list,
    captured,
    error_of,
    first,
    give_outcome,
    hidden,
    identifier,
    kinds,
    parsed,
    prompted_tools,
    read_events_and_logs,
    read_messages,
    result_value,
    said_by_user,
    session_candidates,
    split_prompt,
    system_of,
    system_text,
    tool_arguments,
    tool_definitions,
    tool_outcome,
    tool_values,
    usage_of,
    was_cut,
    with_thought,
    without_fields,
    without_protocol,
)
from pandaeval_otel.dialects.plain import kind_by_name
from pandaeval_otel.model import Captured, Kind, Message, Part, Reasoning, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.message import all_parts

_KINDS = kinds(
    llm=(
        "chat",
        "text_completion",
        "generate_content",
        "fetch_response",
        "completion",
        "chat.completions",
        "text.completions",
        "llm_call",
        "llm_request",
    ),
    embedding="embeddings",
    retrieval=("retrieval", "vector_db_retrieve", "search_memory"),
    agent=("invoke_agent", "agent_call"),
    step="create_agent",
    tool=("execute_tool", "tool_call"),
    workflow=("invoke_workflow", "invoke_swarm", "invoke_graph"),
    evaluation="evaluation",
    guardrail="apply_guardrail",
)
"""Kinds by ``gen_ai.operation.name``. ``create_agent`` is no run: frameworks emit it when constructing an agent. An
unknown operation is a step, unless the span describes a model call.
"""
_EARLIER_TOOLS = (semconv.AGENT_TOOLS, "gen_ai.request.tools")
_TOOL_KEYS = frozenset({semconv.TOOL_NAME, semconv.TOOL_CALL_ID, semconv.MCP_METHOD})
_SENTRY = frozenset({semconv.RESPONSE_TEXT, semconv.RESPONSE_CALLS})
_STEPS = frozenset({"plan", "rerank", "guardrail", "count_tokens", "summarize_memory"})
_MODELS = frozenset({semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL})
_ANSWERS = frozenset(
    {*semconv.OUTPUTS, semconv.RESPONSE_TEXT, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"}
)
_OTHERS = frozenset({semconv.AGENT_NAME, "gen_ai.agent.id", semconv.WORKFLOW_NAME, *_TOOL_KEYS})
"""Keys of spans that are not model calls, even with model and tokens."""

_MERGED_TOOLS = "(merged tools)"
"""Tool name of the span with which ADK closes parallel calls. It calls no tool."""
_EVALUATION_KEYS = (semconv.EVALUATION_NAME, semconv.EVALUATION_SCORE, semconv.EVALUATION_LABEL)
_SENTENCE_END = (".", "!", "?", ":", "\n")
# Module constants: an enum lookup costs several times as much, and every span needs one.
_AGENT, _EVALUATION, _LLM, _RETRIEVAL, _TOOL = Kind.AGENT, Kind.EVALUATION, Kind.LLM, Kind.RETRIEVAL, Kind.TOOL
_ANY_AGENT = "OpenAI Agent"
"""Agent name that openai-agents-v2 writes on every span that is not an agent's."""
_INVENTED_CONVERSATIONS = frozenset({("crewai", "call llm"), ("crewai", "execute lite agent")})
"""Scope and name of spans whose conversation id is only a task or agent id."""
_CHAT_SCOPE, _CHAT = "opentelemetry.instrumentation.ag2", "conversation "
"""Scope and name prefix of AG2 chats. Each has its own conversation id and its initiator as agent."""
_REFERRED = ("input.messages", "output.messages", "system_instructions", "tool.definitions")
_CONTENT_REFS = [f"gen_ai.{content}_ref" for content in _REFERRED]
_USER_KEYS = ("gen_ai.user.id", "gen_ai.user", "gen_ai.request.user")
_SESSION_RANKS = {
    key: semconv.SESSION_RANKS[key]
    for key in (semconv.CONVERSATION_ID, semconv.GEN_AI_SESSION_ID, semconv.GEN_AI_THREAD_ID)
}
_CALLED = frozenset({semconv.TOOL_CALL_ID, semconv.TOOL_ARGUMENTS, semconv.TOOL_RESULT})
"""Keys that, with a tool name, identify a tool call under any operation."""
_STATED_ARGUMENTS = (
    *("gen_ai.skill.name", "gen_ai.skill.resource.name"),
    *("process.executable.name", "process.command_args"),
)
"""Keys with a call's argument: the skill or file to load, or the command."""
_RARE = frozenset({*_CONTENT_REFS, semconv.TOOL_DEFINITIONS, *_EARLIER_TOOLS, semconv.TOOL_STATUS, *_USER_KEYS})
"""Rare keys, checked with a single set operation."""
_NO_CONTENT = EventContent()
_NOTHING_SAID = Reading()


class GenAI(Dialect):
    name = "gen_ai"
    priority = 40
    roots = frozenset({"gen_ai", "mcp"})
    content_switch = Switch(
        {
            "opentelemetry.": "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY and "
            "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental (releases before these modes: "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, and send the log records here as well)",
        }
    )

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        return self.read_rest(span, logs, _NOTHING_SAID)

    def read_rest(self, span: RawSpan, logs: Logs, earlier_reading: Reading) -> Reading | None:
        content = read_events_and_logs(span, logs) if span.events or logs else _NO_CONTENT
        attributes = span.attributes
        for detail in content.details:
            stated = {key: value for key, value in attributes.items() if value not in (None, "", "[]")}
            attributes = {**attributes, **detail, **stated}
        kind = kind_of(span, attributes)
        reading = Reading(kind)
        _read_identity(reading, span, attributes)
        if kind is _TOOL:
            _read_tool(reading, span, attributes)
        elif kind is not _EVALUATION:
            _read_messages(reading, attributes, content, earlier_reading)
            reading.usage = usage_of(attributes)
        if kind is _RETRIEVAL:
            documents = first(attributes, ("gen_ai.retrieval.documents", "gen_ai.memory.records"))
            reading.documents = () if hidden(documents) else tuple(as_list(documents))
            if reading.input is None:
                query = first(attributes, ("gen_ai.retrieval.query.text", "gen_ai.memory.query.text"))
                reading.input = said_by_user(query)
        if not _RARE.isdisjoint(attributes):
            _read_rare(reading, span, attributes)
        return reading


DIALECT = GenAI()


def _read_identity(reading: Reading, span: RawSpan, attributes: Attributes) -> None:
    get = attributes.get
    reading.request_model = identifier(get(semconv.REQUEST_MODEL))
    reading.response_model = identifier(get(semconv.RESPONSE_MODEL))
    reading.response_id = identifier(get("gen_ai.response.id"))
    reading.previous_response_id = identifier(get("gen_ai.request.previous_response.id"))
    chat = span.scope.name == _CHAT_SCOPE and span.name.startswith(_CHAT)
    agent = "" if chat else identifier(get(semconv.AGENT_NAME))
    reading.agent_name = "" if agent == _ANY_AGENT else agent
    if (
        semconv.CONVERSATION_ID in attributes
        or semconv.GEN_AI_SESSION_ID in attributes
        or semconv.GEN_AI_THREAD_ID in attributes
        or span.resource.names_session
    ):
        conversation = get(semconv.CONVERSATION_ID)
        if not conversation or not (chat or (span.scope.name, span.name) in _INVENTED_CONVERSATIONS):
            reading.session_ids = session_candidates(attributes, span.resource, _SESSION_RANKS)
        if conversation and not reading.session_ids and not reading.previous_response_id:
            # Agent Framework writes a response id in place of the conversation's.
            name = identifier(conversation)
            reading.previous_response_id = name if name.startswith("resp_") else ""
    # OpenLIT calls spans of a framework's methods like agents.
    if reading.kind is _AGENT and not reading.agent_name and not span.scope.name.startswith("openlit."):
        name = kind_by_name(span.name)[1]  # agents without a name are called by their model (Vercel AI SDK)
        reading.agent_name = "" if name == reading.request_model else name
        reading.agent_name = reading.agent_name or identifier(get(semconv.WORKFLOW_NAME))


def _read_rare(reading: Reading, span: RawSpan, attributes: Attributes) -> None:
    reading.user_id = identifier(first(attributes, _USER_KEYS))
    refs = [ref for key in _CONTENT_REFS if key in attributes for ref in as_list(attributes[key])]
    reading.content_refs = tuple(ref for ref in refs if type(ref) is str and ref)
    offered = tool_definitions(attributes.get(semconv.TOOL_DEFINITIONS))
    if offered is None:
        offered = tool_definitions(first(attributes, _EARLIER_TOOLS))
    reading.tools = reading.tools if offered is None else offered
    if attributes.get(semconv.TOOL_STATUS) == "error":
        reading.error = error_of(span) or "tool error"


def _read_tool(reading: Reading, span: RawSpan, attributes: Attributes) -> None:
    get = attributes.get
    kind, name = kind_by_name(span.name)
    if kind is not _TOOL and span.name.startswith(semconv.MCP_TOOL_CALL):
        name = span.name.removeprefix(semconv.MCP_TOOL_CALL).strip()
    elif kind is not _TOOL:
        name = ""
    reading.tool_name = identifier(get(semconv.TOOL_NAME)) or name
    reading.tool_call_id = identifier(get(semconv.TOOL_CALL_ID))
    arguments, result = get(semconv.TOOL_ARGUMENTS), get(semconv.TOOL_RESULT)
    if semconv.OUTPUT_MESSAGES in attributes or semconv.INPUT_MESSAGES in attributes:
        arguments, result = _in_messages(reading, attributes, arguments, result)
    if span.events:
        of_events = tool_values(span)
        arguments = of_events[0] if hidden(arguments) else arguments
        result = of_events[1] if hidden(result) else result
    reading.arguments = captured(arguments) or tool_arguments(first(attributes, semconv.TOOL_ARGUMENTS_OLD))
    if reading.arguments is None and (stated := {key: get(key) for key in _STATED_ARGUMENTS if get(key)}):
        reading.arguments = Captured(stated)
    if get(semconv.EXIT_CODE):
        reading.error = error_of(span) or f"exit code {get(semconv.EXIT_CODE)}"
    if not hidden(result):
        reading.result = Captured(result, result_value)
    elif (old_result := first(attributes, semconv.TOOL_RESULTS_OLD)) is not None:
        give_outcome(reading, tool_outcome(old_result))


def _in_messages(reading: Reading, attributes: Attributes, arguments: Any, result: Any) -> tuple[Any, Any]:
    given = all_parts(read_messages(attributes.get(semconv.INPUT_MESSAGES), "assistant")[0])
    made = all_parts(read_messages(attributes.get(semconv.OUTPUT_MESSAGES), "tool")[0])
    for part in (*given, *made):
        if type(part) is ToolRequest or type(part) is ToolResponse:
            reading.tool_call_id = reading.tool_call_id or part.id
    return (_told(given) if hidden(arguments) else arguments), (_told(made) if hidden(result) else result)


def _told(parts: list[Part]) -> Any:
    for part in parts:
        if type(part) is ToolRequest:
            return part.arguments
        if type(part) is ToolResponse:
            return part.result
    return "\n".join(part.text for part in parts if type(part) is Text) or None


def _read_messages(reading: Reading, attributes: Attributes, content: EventContent, earlier_reading: Reading) -> None:
    # Today's attributes, or the earlier ones, which also were span attributes with some emitters.
    inputs, outputs = first(attributes, semconv.INPUTS), _outputs(attributes)
    # Instructions may be among the inputs.
    known = earlier_reading.input and (earlier_reading.system or earlier_reading.kind is _LLM)
    given, given_cut = (None, was_cut(inputs)) if known else read_messages(inputs, "user")
    given = split_prompt(given) if semconv.PROMPT_OLD in attributes else given
    made, made_cut = (None, was_cut(outputs)) if earlier_reading.output else read_messages(outputs, "assistant")
    given, made = given or content.input or given, made or content.output or made
    if given == () and reading.kind is _AGENT:
        given = None  # Semantic Kernel's agents write "[]", whatever they were asked
    if made == () and reading.kind is _LLM and semconv.FINISH_REASONS not in attributes:
        made = None  # a response that is still queued
    if made:
        made = _completed(made, attributes, reading.kind is _LLM)
    cleaned_output = without_protocol(made) if reading.kind is _LLM else made
    if cleaned_output is not made:
        given = without_fields(given)
    reading.input, reading.output = given, cleaned_output
    if "gen_ai.system_instructions" in attributes:
        reading.system = system_text(attributes["gen_ai.system_instructions"])
    if given and not reading.system:
        reading.system = system_of(given)
    reading.tools = None if cleaned_output is made else prompted_tools(reading.system)
    if given_cut or made_cut:
        reading.notes = CUT


def _outputs(attributes: Attributes) -> Any:
    """Return the messages of a response; Sentry's texts and calls become one."""
    outputs = first(attributes, semconv.OUTPUTS)
    if outputs is not None or _SENTRY.isdisjoint(attributes):
        return outputs
    texts = parsed(attributes.get(semconv.RESPONSE_TEXT))
    joined_text = "\n".join(text for text in as_list(texts) if type(text) is str and text)
    return [{"role": "assistant", "content": joined_text, "tool_calls": parsed(attributes.get(semconv.RESPONSE_CALLS))}]


def _completed(output: Messages, attributes: Attributes, of_model: bool) -> Messages:
    if semconv.FINISH_REASONS in attributes and not output[-1].finish_reason:
        output = _with_finish_reasons(output, as_list(attributes[semconv.FINISH_REASONS]))
    if of_model and len(output) > 1:
        output = without_chunks(output)
    if semconv.CONTENT_REASONING in attributes:
        return with_thought(output, attributes[semconv.CONTENT_REASONING])
    return output


def _with_finish_reasons(output: Messages, reasons: list[Any]) -> Messages:
    if len(reasons) not in (1, len(output)):
        return output
    named = [""] * (len(output) - len(reasons)) + [identifier(reason) for reason in reasons]
    return tuple(
        message if message.finish_reason else Message(message.role, message.parts, reason)
        for message, reason in zip(output, named, strict=True)
    )


def kind_of(span: RawSpan, attributes: Attributes) -> Kind | None:
    """Return the span's kind from its operation or other attributes, or ``None``."""
    operation = attributes.get(semconv.OPERATION)
    kind = _KINDS.get(operation) if type(operation) is str else None
    if kind is not None:
        if attributes.get(semconv.TOOL_NAME) == _MERGED_TOOLS:
            return Kind.STEP
        return kind
    names_tool = not _TOOL_KEYS.isdisjoint(attributes)
    named = kind_by_name(span.name)[0]
    # No work of an agent may count as a score.
    if not (names_tool or named is _TOOL) and any(key in attributes for key in _EVALUATION_KEYS):
        return _EVALUATION
    if operation and identifier(operation):
        return _kind_of_other(operation, attributes)
    method = attributes.get(semconv.MCP_METHOD)
    if method is not None:
        if method == semconv.MCP_TOOL_CALL:
            return _TOOL
        return Kind.STEP
    if named is not None:
        return named
    if names_tool:
        return _TOOL
    if semconv.REQUEST_MODEL in attributes or semconv.RESPONSE_MODEL in attributes:
        return _LLM
    if semconv.WORKFLOW_NAME in attributes:
        return Kind.WORKFLOW
    if operation:
        return Kind.STEP
    return None


def _kind_of_other(operation: Any, attributes: Attributes) -> Kind:
    if semconv.TOOL_NAME in attributes and not _CALLED.isdisjoint(attributes):
        return _TOOL
    if operation in _STEPS or _MODELS.isdisjoint(attributes) or _ANSWERS.isdisjoint(attributes):
        return Kind.STEP
    return _LLM if _OTHERS.isdisjoint(attributes) else Kind.STEP


def without_chunks(output: Messages) -> Messages:
    """Join a streamed answer, which ADK records as a message per chunk. Some emitters add the whole text."""
    *before, last = output
    if not last.finish_reason or any(message.role != "assistant" or message.finish_reason for message in before):
        return output
    parts: list[Part] = []
    for part in all_parts(output):
        if parts and part == parts[-1] and type(part) is Text:
            continue
        joined = _joined(parts[-1], part) if parts else None
        if joined is None:
            parts.append(part)
        else:
            parts[-1] = joined
    return (Message("assistant", tuple(parts), last.finish_reason),)


def _joined(part: Part, following: Part) -> Part | None:
    kind = type(part)
    if kind is not type(following) or not isinstance(part, (Text, Reasoning)):
        return None
    text = following.text  # type: ignore[union-attr]
    if part.text.endswith(_SENTENCE_END) and text[:1].isupper():
        return None
    return kind(part.text + text)
