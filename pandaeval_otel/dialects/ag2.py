"""Reads AG2: ``ag2.span.type`` beside the conventions.

Classic releases wrap each chat of two agents in a span, from the initiator's view.
"""

from __future__ import annotations

from dataclasses import replace

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    count,
    kinds,
    messages_of,
    usage_of,
)
from pandaeval_otel.model import Kind, Message

_KINDS = kinds(agent="agent", llm="llm", tool="tool", workflow=("conversation", "multi_conversation"))
_THOUGHT = "gen_ai.usage.thinking_tokens"
_TURNED = {"user": "assistant", "assistant": "user"}


class AG2(ByKind):
    name = "ag2"
    priority = 70
    roots = frozenset({"ag2"})

    def kind_of(self) -> Kind | None:
        word = self.get("ag2.span.type")
        if type(word) is not str:
            return None
        return _KINDS.get(word, Kind.STEP)

    def read_workflow(self) -> None:
        self.input = messages_of(self.get(semconv.INPUT_MESSAGES), "user")
        question = self.input[-1].text if self.input else ""
        history = messages_of(self.get(semconv.OUTPUT_MESSAGES), "assistant") or ()
        self.output = _after(question, [_turned(message) for message in history])

    def read_llm(self) -> None:
        if _THOUGHT in self.attributes:
            usage = usage_of(self.attributes)
            self.usage = usage and replace(usage, reasoning=count(self.attributes[_THOUGHT]) or 0)


def _turned(message: Message) -> Message:
    """Swap sides of a message without tool calls, because the initiator's history has it as the assistant."""
    if message.tool_requests or message.role not in _TURNED:
        return message
    return Message(_TURNED[message.role], message.parts, message.finish_reason)


def _after(question: str, history: list[Message]) -> Messages | None:
    start = 0
    for index, message in enumerate(history, 1):
        if message.role == "user" and message.text == question:
            start = index
    return tuple(history[start:]) or None


DIALECT = AG2
