"""Scripted model replies and faults, independent of wire formats.

A *script* is a stateless function from conversation to answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Served:
    """A call that the provider runs within its reply.

    ``kind``: ``search``, ``mcp``, ``code`` or ``files``. ``error`` replaces ``result``.
    """

    kind: str
    arguments: Mapping[str, Any]
    result: str = ""
    name: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model answer: a step with ``calls``, else final. ``served`` precedes the text."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    served: tuple[Served, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed answer.

    ``raw`` replaces the whole body, with status 200.
    """

    status: int = 500
    message: str = "The server had an error while processing your request."
    kind: str = "server_error"
    raw: str | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Message:
    """Role, text and called tools of a message."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request without wire format; consecutive assistant messages are joined."""

    model: str
    messages: tuple[Message, ...] = ()
    tools: tuple[str, ...] = ()

    def digest(self) -> str:
        return hashlib.sha256(repr((self.model, self.messages, self.tools)).encode()).hexdigest()

    def offered(self, name: str) -> str:
        """Return the offered tool, also with an MCP server prefix."""
        longer = [
            tool for tool in self.tools if tool.endswith(name) and not tool[-len(name) - 1 : -len(name)].isalnum()
        ]
        return name if name in self.tools or len(longer) != 1 else longer[0]

    def input_tokens(self) -> int:
        """Estimate four characters per token, plus four tokens per message."""
        return sum(len(m.text) // 4 + 4 for m in self.messages) + 12 * len(self.tools)


Script = Callable[[Conversation], Reply | Fault]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user message and all replies; the last has no calls."""

    user: str
    replies: tuple[Reply | Fault, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A script of exchanges with distinct user texts.

    The step is the number of assistant messages with calls after the user's message.
    """

    exchanges: tuple[Exchange, ...]

    def __call__(self, conversation: Conversation) -> Reply | Fault:
        """Return the next reply; 400 for no exchange, 500 after the end."""
        found = self._exchange(conversation)
        if found is None:
            return Fault(400, "No exchange of this script has that user message.", "invalid_request_error")
        at, exchange = found
        step = sum(1 for m in conversation.messages[at + 1 :] if m.role == "assistant" and m.calls)
        if step >= len(exchange.replies):
            return Fault(500, "The script has no further reply.")
        return exchange.replies[step]

    def _exchange(self, conversation: Conversation) -> tuple[int, Exchange] | None:
        for at in range(len(conversation.messages) - 1, -1, -1):
            message = conversation.messages[at]
            for exchange in self.exchanges:
                if message.role == "user" and exchange.user in message.text:
                    return at, exchange
        return None


def conversation(model: str, messages: list[Message], tools: list[str]) -> Conversation:
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == joined[-1].role == "assistant":
            last = joined.pop()
            message = Message(
                "assistant", "\n".join(t for t in (last.text, message.text) if t), last.calls + message.calls
            )
        joined.append(message)
    return Conversation(model, tuple(joined), tuple(tools))
