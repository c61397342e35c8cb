"""Reads AG2: ``ag2.span.type`` beside the conventions. Classic releases put a span around each chat of two agents, from
its initiator's point of view; new releases write a span for every count of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import usage_of
from pandaeval_otel.dialects._messages import Messages, messages_of
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._values import count
from pandaeval_otel.model import Kind, Message
from pandaeval_otel.model.raw import RawLog, RawSpan

_KINDS = {
    "agent": Kind.AGENT,
    "llm": Kind.LLM,
    "tool": Kind.TOOL,
    "conversation": Kind.WORKFLOW,
    "multi_conversation": Kind.WORKFLOW,
}
_THOUGHT = "gen_ai.usage.thinking_tokens"
_TURNED = {"user": "assistant", "assistant": "user"}


class AG2(Dialect):
    """Reads AG2's deviations from the conventions."""

    name = "ag2"
    priority = 70
    roots = frozenset({"ag2"})

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        word = attributes.get("ag2.span.type")
        if type(word) is not str:
            return None
        reading = Reading(kind=_KINDS.get(word, Kind.STEP))
        if reading.kind is Kind.WORKFLOW:
            reading.input = messages_of(attributes.get(semconv.INPUT_MESSAGES), "user")
            history = messages_of(attributes.get(semconv.OUTPUT_MESSAGES), "assistant") or ()
            said = tuple(_from_other_side(message) for message in history)
            question = reading.input[-1].text if reading.input else ""
            reading.output = _after(question, said) or None
        elif reading.kind is Kind.LLM and _THOUGHT in attributes:
            usage = usage_of(attributes)
            reading.usage = usage and replace(usage, reasoning=count(attributes[_THOUGHT]) or 0)
        return reading


DIALECT = AG2()


def _from_other_side(message: Message) -> Message:
    """Swaps the roles of a message: the chat's initiator is the assistant in its own history, and the others are users.
    Tool calls have the right role already."""
    if message.tool_requests or message.role not in _TURNED:
        return message
    return Message(_TURNED[message.role], message.parts, message.finish_reason)


def _after(question: str, said: Messages) -> Messages:
    """Returns the messages after the question: the history also holds earlier chats."""
    for index in range(len(said) - 1, -1, -1):
        if said[index].role == "user" and said[index].text == question:
            return said[index + 1 :]
    return said
