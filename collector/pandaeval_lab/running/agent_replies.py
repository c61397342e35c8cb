"""Reads the replies of agents: JSON, OpenAI chat completions, and plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_COMPLETION = "choices.0.message.content"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call that the agent requests. ``arguments``: a map, or a text that is not a map."""

    id: str
    name: str
    arguments: Any

    def to_dict(self) -> dict[str, Any]:
        asked = {"name": self.name, "arguments": content_of(self.arguments)}
        return {"id": self.id, "type": "function", "function": asked}


@dataclass(frozen=True, slots=True)
class AgentReply:
    """A reply. ``text``: the answer, ``None`` if the reply has none."""

    text: str | None
    calls: tuple[RequestedCall, ...] = ()


def content_of(value: Any) -> str:
    """Return a text, or JSON of another value."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def read_reply(body: str, content_type: str, path: str | None) -> AgentReply:
    """Read a response. ``path``: place of the answer, such as ``data.text``; default: ``answer``, else OpenAI's."""
    with suppress(ValueError):
        return reply_of(json.loads(body), path)
    return AgentReply(body if content_type.startswith("text/plain") else None)


def reply_of(value: Any, path: str | None) -> AgentReply:
    """Read a JSON reply."""
    calls = _at(value, "choices.0.message.tool_calls") or _at(value, "tool_calls")
    texts = (_at(value, each) for each in ([path] if path else ["answer", _COMPLETION]))
    requests = (_request(at, each) for at, each in enumerate(calls if isinstance(calls, list) else []))
    return AgentReply(next((text for text in texts if isinstance(text, str)), None), tuple(requests))


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdecimal():
            value = next(iter(value[int(part) :]), None)
        else:
            return None
    return value


def _request(at: int, given: Any) -> RequestedCall:
    call = given.get("function", given) if isinstance(given, Mapping) else {}
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments or "{}")
    return RequestedCall(str(_at(given, "id") or f"call_{at}"), str(call.get("name", "")), arguments)
