"""Reads the OpenTelemetry GenAI conventions of every release since the first one (1.26), up to 0.1.0 of their own.

Content may be JSON text or structure, on the span, on span events or on log records; names of earlier releases are read
beside today's. Provider names decide nothing: frameworks write their own name there.
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
    error_of,
    first,
    hidden,
    identifier,
    kinds,
    parsed,
    read_messages,
    result_value,
    said_by_user,
    session_candidates,
    system_of,
    system_text,
    told_by,
    tool_definitions,
    tool_values,
    usage_of,
    was_cut,
    with_thought,
)
from pandaeval_otel.dialects.plain import kind_by_name
from pandaeval_otel.model import Captured, Kind, Message, Part, Reasoning, Text

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
"""Kinds by ``gen_ai.operation.name``; any other word is a step of some framework. Frameworks emit ``create_agent`` when
they construct an agent, in a trace of its own: no run."""

_MERGED_TOOLS = "(merged tools)"
"""Tool name of the span with which ADK closes parallel calls. It calls no tool."""
_TOOL_KEYS = frozenset({semconv.TOOL_NAME, semconv.TOOL_CALL_ID, semconv.MCP_METHOD})
_EVALUATION_KEYS = (semconv.EVALUATION_NAME, semconv.EVALUATION_SCORE, semconv.EVALUATION_LABEL)
_SENTENCE_END = (".", "!", "?", ":", "\n")
# Module constants: an enum lookup costs several times as much, and every span needs one.
_AGENT, _EVALUATION, _LLM, _RETRIEVAL, _TOOL = Kind.AGENT, Kind.EVALUATION, Kind.LLM, Kind.RETRIEVAL, Kind.TOOL
_ANY_AGENT = "OpenAI Agent"
"""Agent name that openai-agents-v2 writes on every span that is not an agent's."""
_INVENTED_CONVERSATIONS = frozenset({("crewai", "call llm"), ("crewai", "execute lite agent")})
"""Scope and name of spans whose conversation id is a task's or an agent's id if there is no conversation."""
_CHAT_SCOPE, _CHAT = "opentelemetry.instrumentation.ag2", "conversation "
"""Scope and name prefix of AG2's chats, each of which has a conversation id of its own and its initiator as agent."""
_REFERRED = ("input.messages", "output.messages", "system_instructions", "tool.definitions")
_CONTENT_REFS = [f"gen_ai.{content}_ref" for content in _REFERRED]
_USER_KEYS = ("gen_ai.user.id", "gen_ai.user")
_SESSION_RANKS = {
    key: semconv.SESSION_RANKS[key]
    for key in (semconv.CONVERSATION_ID, semconv.GEN_AI_SESSION_ID, semconv.GEN_AI_THREAD_ID)
}
_CALLED = frozenset({semconv.TOOL_CALL_ID, semconv.TOOL_ARGUMENTS, semconv.TOOL_RESULT})
"""Keys that, beside a tool's name, tell that it was called, whatever the operation is called."""
_STATED_ARGUMENTS = (
    *("gen_ai.skill.name", "gen_ai.skill.resource.name"),
    *("process.executable.name", "process.command_args"),
)
"""Keys that state what a call asked for: the skill or its file to load, the command to run."""
_RARE = frozenset({*_CONTENT_REFS, semconv.TOOL_DEFINITIONS, semconv.AGENT_TOOLS, semconv.TOOL_STATUS, *_USER_KEYS})
"""Keys that few spans have: one set operation tells that a span has none of them."""
_NOTHING_TOLD = EventContent()
_NOTHING_SAID = Reading()


class GenAI(Dialect):
    """Reads ``gen_ai.*`` and ``mcp.*``."""

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

    def read_rest(self, span: RawSpan, logs: Logs, said: Reading) -> Reading | None:
        """Reads as :meth:`read` does, but no messages that ``said`` has already: they cost more than all else."""
        told = told_by(span, logs) if span.events or logs else _NOTHING_TOLD
        attributes = span.attributes
        for detail in told.details:
            stated = {key: value for key, value in attributes.items() if value not in (None, "", "[]")}
            attributes = {**attributes, **detail, **stated}
        kind = kind_of(span, attributes)
        reading = Reading(kind)
        _read_identity(reading, span, attributes)
        if kind is _TOOL:
            _read_tool(reading, span, attributes)
        elif kind is not _EVALUATION:
            _read_messages(reading, attributes, told, said)
            reading.usage = usage_of(attributes)
        if kind is _RETRIEVAL:
            found = first(attributes, ("gen_ai.retrieval.documents", "gen_ai.memory.records"))
            reading.documents = () if hidden(found) else tuple(as_list(found))
            query = first(attributes, ("gen_ai.retrieval.query.text", "gen_ai.memory.query.text"))
            reading.input = said_by_user(query) if reading.input is None else reading.input
        if not _RARE.isdisjoint(attributes):
            reading.user_id = identifier(first(attributes, _USER_KEYS))
            refs = [ref for key in _CONTENT_REFS if key in attributes for ref in as_list(attributes[key])]
            reading.content_refs = tuple(ref for ref in refs if type(ref) is str and ref)
            if semconv.TOOL_DEFINITIONS in attributes or semconv.AGENT_TOOLS in attributes:
                tools = tool_definitions(attributes.get(semconv.TOOL_DEFINITIONS))
                reading.tools = tools if tools is not None else tool_definitions(attributes.get(semconv.AGENT_TOOLS))
            if attributes.get(semconv.TOOL_STATUS) == "error":
                reading.error = error_of(span) or "tool error"
        return reading


DIALECT = GenAI()


def _read_identity(reading: Reading, span: RawSpan, attributes: Attributes) -> None:
    get = attributes.get
    reading.request_model = identifier(get(semconv.REQUEST_MODEL))
    reading.response_model = identifier(get(semconv.RESPONSE_MODEL))
    reading.response_id = identifier(get("gen_ai.response.id"))
    reading.previous_response_id = identifier(get("gen_ai.request.previous_response.id"))
    reading.agent_name = identifier(get(semconv.AGENT_NAME))
    chat = span.scope.name == _CHAT_SCOPE and span.name.startswith(_CHAT)
    if chat or reading.agent_name == _ANY_AGENT:
        reading.agent_name = ""
    if (
        semconv.CONVERSATION_ID in attributes
        or semconv.GEN_AI_SESSION_ID in attributes
        or semconv.GEN_AI_THREAD_ID in attributes
        or span.resource.names_session
    ):
        conversation = attributes.get(semconv.CONVERSATION_ID)
        if not conversation or not (chat or (span.scope.name, span.name) in _INVENTED_CONVERSATIONS):
            reading.session_ids = session_candidates(attributes, span.resource, _SESSION_RANKS)
        if conversation and not reading.session_ids and not reading.previous_response_id:
            # Agent Framework writes a response id in place of the conversation's.
            found = identifier(conversation)
            reading.previous_response_id = found if found.startswith("resp_") else ""
    if reading.kind is _AGENT and not reading.agent_name:
        name = kind_by_name(span.name)[1]  # agents without a name are called by their model (Vercel AI SDK)
        reading.agent_name = "" if name == reading.request_model else name
    if reading.kind is _AGENT and not reading.agent_name and semconv.WORKFLOW_NAME in attributes:
        reading.agent_name = identifier(attributes[semconv.WORKFLOW_NAME])


def _read_tool(reading: Reading, span: RawSpan, attributes: Attributes) -> None:
    get = attributes.get
    named, in_name = kind_by_name(span.name)
    if named is not _TOOL:
        before, _, after = span.name.partition(semconv.MCP_TOOL_CALL)
        in_name = "" if before else after.strip()
    reading.tool_name = identifier(get(semconv.TOOL_NAME)) or in_name
    reading.tool_call_id = identifier(get(semconv.TOOL_CALL_ID))
    arguments, result = get(semconv.TOOL_ARGUMENTS), get(semconv.TOOL_RESULT)
    if span.events:
        told_arguments, told_result = tool_values(span)
        arguments = told_arguments if hidden(arguments) else arguments
        result = told_result if hidden(result) else result
    if arguments is not None and not hidden(arguments):
        reading.arguments = Captured(parsed(arguments))
    elif stated := {key: attributes[key] for key in _STATED_ARGUMENTS if attributes.get(key)}:
        reading.arguments = Captured(stated)
    if get(semconv.EXIT_CODE):
        reading.error = error_of(span) or f"exit code {attributes[semconv.EXIT_CODE]}"
    if result is not None and not hidden(result):
        reading.result = Captured(result, result_value)


def _read_messages(reading: Reading, attributes: Attributes, told: EventContent, said: Reading) -> None:
    # Today's attributes, or the earlier ones, which also were span attributes with some emitters.
    inputs = attributes.get(semconv.INPUT_MESSAGES, attributes.get(semconv.PROMPT_OLD))
    outputs = attributes.get(semconv.OUTPUT_MESSAGES, attributes.get(semconv.COMPLETION_OLD))
    # Instructions may stand among the inputs.
    known = said.input and (said.system or said.kind is _LLM)
    given, given_cut = (None, was_cut(inputs)) if known else read_messages(inputs, "user")
    made, made_cut = (None, was_cut(outputs)) if said.output else read_messages(outputs, "assistant")
    given, made = given or told.input or given, made or told.output or made
    if given == () and reading.kind is _AGENT:
        given = None  # Semantic Kernel's agents write "[]", whatever they were asked
    if made and not made[-1].finish_reason and semconv.FINISH_REASONS in attributes:
        made = _with_finish_reasons(made, as_list(attributes[semconv.FINISH_REASONS]))
    if made and len(made) > 1 and reading.kind is _LLM:
        made = without_chunks(made)
    if made and semconv.CONTENT_REASONING in attributes:
        made = with_thought(made, attributes[semconv.CONTENT_REASONING])
    reading.input, reading.output = given, made
    system = attributes.get("gen_ai.system_instructions")
    reading.system = (None if system is None else system_text(system)) or (system_of(given) if given else None)
    if given_cut or made_cut:
        reading.notes = CUT


def _with_finish_reasons(output: Messages, reasons: list[Any]) -> Messages:
    """Returns ``output`` with the reasons that stand on the span: one for each message, or one for the last."""
    if len(reasons) not in (1, len(output)):
        return output
    stated = [identifier(reason) for reason in reasons]
    named = [*[""] * (len(output) - len(stated)), *stated]
    return tuple(
        message if message.finish_reason else Message(message.role, message.parts, reason)
        for message, reason in zip(output, named, strict=True)
    )


def kind_of(span: RawSpan, attributes: Attributes) -> Kind | None:
    """Returns the span's kind, from its operation or its other attributes; ``None`` if none tells."""
    operation = attributes.get(semconv.OPERATION)
    kind = _KINDS.get(operation) if type(operation) is str else None
    if kind is not None:
        return Kind.STEP if attributes.get(semconv.TOOL_NAME) == _MERGED_TOOLS else kind
    if any(key in attributes for key in _EVALUATION_KEYS):
        # No work of an agent may count as a score.
        names_tool = not _TOOL_KEYS.isdisjoint(attributes) or kind_by_name(span.name)[0] is Kind.TOOL
        if not names_tool:
            return Kind.EVALUATION
    if operation and identifier(operation):
        return Kind.TOOL if semconv.TOOL_NAME in attributes and not _CALLED.isdisjoint(attributes) else Kind.STEP
    method = attributes.get(semconv.MCP_METHOD)
    if method is not None:
        return Kind.TOOL if method == semconv.MCP_TOOL_CALL else Kind.STEP
    kind = kind_by_name(span.name)[0]
    if kind is not None:
        return kind
    if not _TOOL_KEYS.isdisjoint(attributes):
        return Kind.TOOL
    if semconv.REQUEST_MODEL in attributes or semconv.RESPONSE_MODEL in attributes:
        return Kind.LLM
    return Kind.WORKFLOW if semconv.WORKFLOW_NAME in attributes else Kind.STEP if operation else None


def without_chunks(output: Messages | None) -> Messages | None:
    """Returns ``output`` with a streamed answer, which ADK records as one message per chunk, joined into one message.
    Chunks share a single finish reason, on the last of them; separate answers have one each."""
    if not output or len(output) < 2 or not output[-1].finish_reason:
        return output
    if any(message.role != "assistant" or message.finish_reason for message in output[:-1]):
        return output
    parts: list[Part] = []
    for message in output:
        for part in message.parts:
            last = parts[-1] if parts else None
            if isinstance(part, Text) and isinstance(last, Text) and _continues(last.text, part.text):
                parts[-1] = Text(last.text + part.text)
            elif isinstance(part, Reasoning) and isinstance(last, Reasoning) and _continues(last.text, part.text):
                parts[-1] = Reasoning(last.text + part.text)
            else:
                parts.append(part)
    return (Message("assistant", tuple(parts), output[-1].finish_reason),)


def _continues(before: str, after: str) -> bool:
    """Returns whether a text runs on: chunks end anywhere, but a capital right after a full stop begins another
    text."""
    return not (before.endswith(_SENTENCE_END) and after[:1].isupper())
