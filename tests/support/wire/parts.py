"""What the wire formats share: ids, text of content in any shape, words of a stream."""

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
    """A provider's format: how a request is read and an answer is written."""

    def parse(self, body: Mapping[str, Any]) -> Conversation: ...
    def render(self, reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]: ...
    def stream(self, response: dict[str, Any]) -> Iterator[Event]: ...
    def fault(self, fault: Fault) -> dict[str, Any]: ...


class Ids:
    """Ids that depend on a seed and their position only."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def __call__(self, prefix: str, length: int = 24) -> str:
        """The next id: ``prefix`` and ``length`` hex digits."""
        self._count += 1
        return prefix + hashlib.sha256(f"{self._seed}/{prefix}/{self._count}".encode()).hexdigest()[:length]


def text_of(content: Any) -> str:
    """The text in a message's content: a string, a part, or a list of either."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(t for t in map(text_of, content) if t)
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content"))
    return ""


def words(text: str) -> list[str]:
    """The text in the pieces in which it is streamed."""
    return re.findall(r"\s*\S+\s*", text)


def arguments_json(call: Call | Served) -> str:
    """The arguments of a call, as providers send them: a JSON string."""
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def output_tokens(reply: Reply) -> int:
    """A made-up but stable count of the tokens of a reply, reasoning included."""
    calls = sum(len(arguments_json(c)) // 4 + 6 for c in reply.calls)
    return len(reply.text) // 4 + len(reply.reasoning) // 4 + calls + 1
