"""What a scripted model says: the model of replies and faults, apart from any provider's wire format.

A *script* is a function from the conversation in one request to what the model answers. It keeps no state, so a
request may be repeated, retried or reordered and gets the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asks for."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Served:
    """A call that the provider runs itself, within the reply that asks for it.

    ``kind``: ``search``, ``mcp``, ``code`` or ``files``; ``name``: which tool, of an MCP server. ``result``: a text,
    for a search the page that it comes upon. With an ``error`` there is no result.
    """

    kind: str
    arguments: Mapping[str, Any]
    result: str = ""
    name: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model. With ``calls`` it is a step on the way, without it is the final answer. What the
    provider ``served`` stands before the text."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    served: tuple[Served, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that is none.

    ``status`` is the HTTP status, ``delay_s`` the seconds before anything is sent. ``raw`` replaces the whole body
    (with status 200: a reply that does not parse).
    """

    status: int = 500
    message: str = "The server had an error while processing your request."
    kind: str = "server_error"
    raw: str | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request: its role, its text, and the names of the tools it calls."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request without its wire format. Consecutive assistant messages are one message."""

    model: str
    messages: tuple[Message, ...] = ()
    tools: tuple[str, ...] = ()

    def digest(self) -> str:
        """Hex digest of all that is said; equal conversations have equal digests in every process."""
        return hashlib.sha256(repr((self.model, self.messages, self.tools)).encode()).hexdigest()

    def offered(self, name: str) -> str:
        """The tool of that name as this request offers it: clients of MCP servers put the server's name before it."""
        longer = [
            tool for tool in self.tools if tool.endswith(name) and not tool[-len(name) - 1 : -len(name)].isalnum()
        ]
        return name if name in self.tools or len(longer) != 1 else longer[0]

    def input_tokens(self) -> int:
        """A made-up but stable count: about four characters per token, four tokens per message."""
        return sum(len(m.text) // 4 + 4 for m in self.messages) + 12 * len(self.tools)


Script = Callable[[Conversation], Reply | Fault]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user says and all that the model answers to it, in order; the last reply has no calls."""

    user: str
    replies: tuple[Reply | Fault, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A script of one or more exchanges, told apart by the user's text.

    The step within the exchange is the number of assistant messages with tool calls after the user's message, so any
    framework that sends the history along is followed. Users' texts must differ and none may contain another.
    """

    exchanges: tuple[Exchange, ...]

    def __call__(self, conversation: Conversation) -> Reply | Fault:
        """The next reply; a 400 when no exchange fits, a 500 when the script is used up."""
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
    """A :class:`Conversation` with consecutive assistant messages joined."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == joined[-1].role == "assistant":
            last = joined.pop()
            message = Message(
                "assistant", "\n".join(t for t in (last.text, message.text) if t), last.calls + message.calls
            )
        joined.append(message)
    return Conversation(model, tuple(joined), tuple(tools))
