"""Reads AutoGen's runtime: team messages on the spans that pass them to the team's manager.

Without an application span around the run, each handled message is its own trace and is ignored.
"""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    Dialect,
    Logs,
    Object,
    RawSpan,
    Reading,
    Switch,
    as_dict,
    dicts_in,
    identifier,
    parsed,
    request_of,
    text_part,
    usage_in,
)
from pandaeval_otel.model import Kind, Message, Part, Reasoning, ToolResponse, Usage

_PROCESS = "autogen process"
_CONTAINER = "ChatAgentContainer"
"""Class that holds an agent of a team; all other recipients of a team's messages are managers."""
_RESPONSES = ("response", "agent_response")


class AutoGen(Dialect):
    """Reads a team's question, and each agent's answer with its inner messages."""

    name = "autogen"
    priority = 70
    scopes = ("autogen ",)
    names = (_PROCESS,)
    content_switch = Switch(
        {
            "autogen-core": "instrument the model client too, for example with "
            "opentelemetry-instrumentation-openai-v2: AutoGen's own spans never hold content"
        }
    )

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        if not span.name.startswith(_PROCESS) or attributes.get("recipient_agent_class") == _CONTAINER:
            return None
        if not any(link.trace_id == span.trace_id for link in span.links):
            return None
        body = as_dict(parsed(attributes.get("message")))
        response = next((body[key] for key in _RESPONSES if type(body.get(key)) is dict), None)
        if response is not None:
            return _answered(response)
        messages = tuple(map(_message, dicts_in(body.get("messages"))))
        is_question = any(message.role == "user" for message in messages)
        if is_question:
            return Reading(kind=Kind.WORKFLOW, input=messages)
        return None


DIALECT = AutoGen()


def _answered(response: Object) -> Reading | None:
    chat = response.get("chat_message")
    if type(chat) is not dict:
        return None
    items = [*dicts_in(response.get("inner_messages")), chat]
    spent = [usage for item in items if type(usage := item.get("models_usage")) is dict]
    usages = [usage_in(tokens, "prompt_tokens", "completion_tokens") or Usage() for tokens in spent]
    return Reading(
        kind=Kind.AGENT,
        agent_name=identifier(chat.get("source")),
        output=tuple(map(_message, items)),
        usage=sum(usages, Usage()) if usages else None,
    )


def _message(item: Object) -> Message:
    role = "user" if item.get("source") == "user" else "assistant"
    content = item.get("content")
    if not isinstance(content, (list, tuple)):
        is_thought = item.get("type") == "ThoughtEvent"
        return Message(role, (Reasoning(str(content)) if is_thought else text_part(content),))
    parts: list[Part] = []
    for block in content:
        if type(block) is not dict:
            parts.append(text_part(block))
        elif "call_id" in block:
            result, call_id = parsed(block.get("content")), identifier(block["call_id"])
            parts.append(ToolResponse(result, call_id, identifier(block.get("name"))))
        elif "name" in block:
            parts.append(request_of(block))
    answers = bool(parts) and all(isinstance(part, ToolResponse) for part in parts)
    return Message("tool" if answers else role, tuple(parts))
