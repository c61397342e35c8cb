"""Saves the beginning of JSON, and of the messages in it, that a length limit cut short.

SDKs and backends cut attribute values without a mark (``OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT``, Tempo's 2048
bytes), and half a message list is still most of a conversation.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from pandaeval_otel.base._json import loads
from pandaeval_otel.dialects._values import MAX_DEPTH, MAX_JSON, too_deep
from pandaeval_otel.model import NOT_CAPTURED, Message, Reasoning, Text, ToolRequest, ToolResponse

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[\[\]{},:]', re.DOTALL)
_JSON_START = re.compile(r'\s*[\[{]\s*["\[{]')
_HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_TRIES = 4
_SAYS_NOTHING = (NOT_CAPTURED, Text(""), Reasoning(""), ToolRequest(""), ToolResponse())


def starts_like_json(text: str) -> bool:
    """Returns whether ``text`` begins like a JSON array or object of strings or containers, as prose does not."""
    return _JSON_START.match(text) is not None


def salvage(text: str) -> list[Any] | dict[str, Any] | None:
    """Returns the structure that ``text`` begins to spell: its complete leading items, and the beginning of a string
    that was cut in two. ``None`` if ``text`` is no cut JSON array or object, or too little is left of it."""
    text = text.lstrip()
    if len(text) > MAX_JSON or not starts_like_json(text):
        return None
    scan = _scan(text)
    if scan is None:
        return None
    end, stack, places = scan
    closing = _string_end(text[end:])
    candidates = [] if closing is None else [(text[:end] + closing, stack)]
    candidates += [(text[:position], brackets) for position, brackets in reversed(places)]
    for head, brackets in candidates:
        try:
            found = loads(head + brackets[::-1])
        except (ValueError, RecursionError):
            continue
        if not isinstance(found, (list, dict)) or too_deep(found):
            return None
        _trim(found)
        return found or None
    return None


def _trim(container: list[Any] | dict[str, Any]) -> None:
    """Removes containers at the end that were opened and are still empty."""
    if not container:
        return
    last: Any = len(container) - 1 if isinstance(container, list) else next(reversed(container))
    inner = container[last]
    if isinstance(inner, (list, dict)):
        _trim(inner)
        if not inner:
            del container[last]


def _scan(text: str) -> tuple[int, str, deque[tuple[int, str]]] | None:
    """Returns where the last whole token ends, the closers then due (innermost last), and the last places to cut back
    to. ``None`` for text that is complete, too deep or no JSON at all."""
    stack = ""
    end = 0
    places: deque[tuple[int, str]] = deque(maxlen=_TRIES)
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == '"':  # never closed: this is where the text was cut
            return match.start(), stack, places
        end = match.end()
        if mark in "[{":
            stack += "]" if mark == "[" else "}"
            places.append((end, stack))
        elif mark in "]}":
            if stack[-1:] != mark or len(stack) == 1:
                return None
            stack = stack[:-1]
        elif mark == ",":
            places.append((match.start(), stack))
        if len(stack) > MAX_DEPTH:
            return None
    return end, stack, places


def _string_end(rest: str) -> str | None:
    """Returns ``rest`` (the text after the last whole token) as a closed string; ``""`` if it is empty; ``None`` if it
    begins a number or a word, whose value cannot be known."""
    rest = rest.lstrip()
    if not rest:
        return ""
    if rest[0] != '"':
        return None
    half = _HALF_ESCAPE.search(rest)
    if half:
        rest = rest[: half.start(1)]
    return _HALF_PAIR.sub("", rest) + '"'


def without_cut_values(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """Marks the last message as incomplete, and keeps only the name and id of a call whose arguments or result a length
    limit cut in two: half of them is no evidence."""
    if not found:
        return found
    last = found[-1]
    parts = list(last.parts)
    ended = parts.pop() if parts else NOT_CAPTURED
    if isinstance(ended, ToolRequest):
        ended = ToolRequest(ended.name, None, ended.id)
    elif isinstance(ended, ToolResponse) and type(ended.result) is not str:
        ended = ToolResponse(None, ended.id, ended.name)
    if ended not in _SAYS_NOTHING:
        parts.append(ended)
    return (*found[:-1], Message(last.role, (*parts, NOT_CAPTURED), last.finish_reason))
