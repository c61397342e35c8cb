"""Shared parts of the wire formats."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tests.support.script import Call, Conversation, Fault, Reply, Served

CREATED = 1_760_000_000  # seconds; fixed, so that the same request gets the same bytes
Event = tuple[str | None, dict[str, Any] | str]


class Wire(Protocol):
    """A provider's request parser and answer writer."""

    def parse(self, body: Mapping[str, Any]) -> Conversation: ...
    def render(self, reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]: ...
    def stream(self, response: dict[str, Any]) -> Iterator[Event]: ...
    def fault(self, fault: Fault) -> dict[str, Any]: ...


class Ids:
    """IDs by seed and position."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def __call__(self, prefix: str, length: int = 24) -> str:
        """Return ``prefix`` and ``length`` hex digits."""
        self._count += 1
        return prefix + hashlib.sha256(f"{self._seed}/{prefix}/{self._count}".encode()).hexdigest()[:length]


def text_of(content: Any) -> str:
    """Return the text of a string, part or list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(t for t in map(text_of, content) if t)
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content"))
    return ""


def words(text: str) -> list[str]:
    """Return the pieces of a streamed text."""
    return re.findall(r"\s*\S+\s*", text)


def arguments_json(call: Call | Served) -> str:
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def output_tokens(reply: Reply) -> int:
    calls = sum(len(arguments_json(c)) // 4 + 6 for c in reply.calls)
    return len(reply.text) // 4 + len(reply.reasoning) // 4 + calls + 1
