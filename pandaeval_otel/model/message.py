"""Messages between a user, a model and its tools, and their parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Messages must not be changed: several spans share one. They are not declared frozen because setting the fields of a
# frozen object takes four times as long, and there are many.


@dataclass(slots=True, unsafe_hash=True)
class Text:
    """A part of plain text."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class Reasoning:
    """The model's own thinking: a claim, never evidence."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class ToolRequest:
    """A model's tool request.

    ``arguments``: parsed JSON, else the string; ``None`` if not captured. ``hosted``: the provider runs the tool.
    """

    name: str
    arguments: Any = None
    id: str = ""
    hosted: bool = False


@dataclass(slots=True, unsafe_hash=True)
class ToolResponse:
    """A tool's answer, as the next model call received it.

    ``result``: ``None`` if not captured. ``name`` may be ``""``.
    """

    result: Any = None
    id: str = ""
    name: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Media:
    """An image, sound, video or document, without content. ``uri`` is never fetched."""

    modality: str
    uri: str = ""
    mime_type: str = ""


@dataclass(slots=True, unsafe_hash=True)
class OtherPart:
    """A part of unknown type, unchanged."""

    type: str
    value: Any = None


Part = Text | Reasoning | ToolRequest | ToolResponse | Media | OtherPart

NOT_CAPTURED = OtherPart("not_captured")
"""Replaces message text or thoughts that were not captured or were cut."""


@dataclass(slots=True, unsafe_hash=True)
class Message:
    """A message. ``role`` is ``system | user | assistant | tool``.

    >>> message = Message("assistant", (Text("Let me look."), ToolRequest("search", {"q": "tea"})))
    >>> message.text, message.tool_requests[0].arguments
    ('Let me look.', {'q': 'tea'})
    """

    role: str
    parts: tuple[Part, ...] = ()
    finish_reason: str = ""

    @property
    def text(self) -> str:
        """The text parts, each on a line, without reasoning, tool parts and media."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text) and part.text)

    @property
    def hidden(self) -> bool:
        """Whether part of this message was not captured, so ``text`` is incomplete."""
        return any_hidden((self,))

    def with_parts(self, *parts: Part) -> Message:
        return Message(self.role, parts, self.finish_reason)

    @property
    def tool_requests(self) -> tuple[ToolRequest, ...]:
        """The tool requests, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolRequest))

    @property
    def tool_responses(self) -> tuple[ToolResponse, ...]:
        """The tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResponse))


def any_hidden(messages: Iterable[Message]) -> bool:
    for message in messages:
        for part in message.parts:
            if type(part) is OtherPart and part == NOT_CAPTURED:
                return True
    return False


def all_parts(messages: Iterable[Message] | None) -> list[Part]:
    return [part for message in messages or () for part in message.parts]
