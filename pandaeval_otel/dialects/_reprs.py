"""Parses Python's ``repr`` and ``str`` of objects, which some instrumentations write in place of JSON.

``ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='hi')])`` becomes the dictionaries that the
message readers know, and so does ``status='success' result='{…}' error=None``, pydantic's ``str``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from pandaeval_otel.base._json import MAX_DEPTH
from pandaeval_otel.dialects._values import MAX_REPR

_OBJECT = re.compile(r"[A-Za-z_][\w.]*\((?:\w+=|[\w.]+\()")
_FIELDS = re.compile(r"[A-Za-z_]\w*=(?:['\"\[({<]|None\b|True\b|False\b|-?\d|\w+\()")
_STRING = re.compile(r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\"""", re.DOTALL)
_QUOTES = frozenset("'\"")
_PREFIXES = frozenset({"b", "r", "u"})
_NUMBER = re.compile(r"-?\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_ANGLE = re.compile(r"<[^<>:]*+(?::\s*+(?P<value>'[^'<>]*+'|\"[^\"<>]*+\"|-?[\w.]++))?+[^<>]*+>")
_SPACE = re.compile(r"[\s,]*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_WORDS = {"None": None, "True": True, "False": False}
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_MAX_DIGITS = 19
_FEWEST_FIELDS = 2
"""``x=5`` alone is what people write."""

# Classes of message parts and the block types that they stand for; of other classes only the fields are kept.
_PART_TYPES = {
    **dict.fromkeys(("TextContent", "TextBlock", "TextPart", "OutputText", "ResponseOutputText"), "text"),
    **dict.fromkeys(("ReasoningContent", "ThinkingBlock", "ThinkingPart", "ReasoningPart"), "reasoning"),
    **dict.fromkeys(("ToolCall", "ToolCallBlock", "ToolUseBlock", "ToolCallPart", "FunctionCall"), "tool_call"),
    **dict.fromkeys(("ToolCallResult", "ToolResultBlock", "FunctionExecutionResult"), "tool_call_response"),
    **dict.fromkeys(("ImageContent", "ImageBlock", "ImageURLBlock"), "image"),
}


class _CutError(ValueError):
    """The text ends, or stops being a repr, before the value does."""


def from_repr(text: str) -> Any:
    """Returns the structure that ``text`` describes; ``None`` when it is no repr of an object, or was cut short."""
    text = text.strip()
    is_object = _OBJECT.match(text) is not None
    if len(text) > MAX_REPR or not (is_object or _FIELDS.match(text)):
        return None
    reader = _Reader(text)
    try:
        found = reader.value(0) if is_object else _object("", reader.fields("", 0))
    except (_CutError, RecursionError):
        return None
    return found if reader.at_end() and len(found) >= (1 if is_object else _FEWEST_FIELDS) else None


def is_object_text(text: str) -> bool:
    """Returns whether ``text`` is an uninformative repr such as ``<Context object at 0x7f…>``, or one that was cut
    short."""
    if text.startswith("<"):
        return " object at 0x" in text or text.endswith(" object>")
    return _OBJECT.match(text) is not None and (not text.endswith(")") or from_repr(text) is None)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def value(self, depth: int) -> Any:
        """Reads the value at the current position."""
        if depth > MAX_DEPTH:
            raise _CutError
        text, at = self._text, self._at
        mark = text[at : at + 1]
        if mark in _CLOSERS:
            return self._container(mark, depth)
        scalar = _SCALARS.get(mark)
        if scalar is not None:
            pattern, read = scalar
            match = pattern.match(text, at)
            if match is None:
                raise _CutError
            self._at = match.end()
            return read(match)
        name = _NAME.match(text, at)
        if name is None:
            raise _CutError
        self._at = name.end()
        follower = text[self._at : self._at + 1]
        if follower in _QUOTES and name[0] in _PREFIXES:
            return self.value(depth)
        if follower != "(":
            return _WORDS.get(name[0], name[0])
        self._at += 1
        return _object(name[0].rpartition(".")[2], self.fields(")", depth + 1))

    def fields(self, closer: str, depth: int) -> dict[str, Any]:
        """Reads ``name=value`` pairs up to ``closer`` (``""``: the end of the text); values without a name by
        position."""
        found: dict[str, Any] = {}
        while not self._closed(closer):
            name = _NAME.match(self._text, self._at)
            if name and self._text[name.end() : name.end() + 1] == "=":
                self._at = name.end() + 1
                found[name[0].lstrip("_")] = self.value(depth + 1)
            elif closer:
                found[str(len(found))] = self.value(depth + 1)
            else:
                raise _CutError
        return found

    def _container(self, opener: str, depth: int) -> Any:
        self._at += 1
        closer = _CLOSERS[opener]
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        while not self._closed(closer):
            item = self.value(depth + 1)
            self._skip()
            if opener == "{" and self._text[self._at : self._at + 1] == ":":
                self._at += 1
                self._skip()
                pairs[str(item)] = self.value(depth + 1)
            else:
                items.append(item)
        return pairs if opener == "{" and not items else items

    def _closed(self, closer: str) -> bool:
        self._skip()
        if self.at_end():
            if closer:
                raise _CutError
            return True
        if closer and self._text[self._at] == closer:
            self._at += 1
            return True
        return False

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at


def _string(match: re.Match[str]) -> str:
    text = match[0][1:-1]
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] not in "xuU":
        return _ESCAPES.get(code, code)
    number = int(code[1:], 16)
    # Half a surrogate pair could not be written to a database.
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"


def _number(match: re.Match[str]) -> Any:
    text = match[0]
    if text.lstrip("-").isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    number = float(text.replace("_", ""))
    return number if isfinite(number) else text


_SCALARS: dict[str, tuple[re.Pattern[str], Callable[[re.Match[str]], Any]]] = {
    **dict.fromkeys("'\"", (_STRING, _string)),
    **dict.fromkeys("0123456789-", (_NUMBER, _number)),
    # The value of <Role.USER: 'user'>; None for <Client object at 0x7f>.
    "<": (_ANGLE, lambda match: match["value"].strip("'\"") if match["value"] else None),
}


def _object(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    if name in _PART_TYPES:
        origin = fields.get("origin")  # Haystack: a result names the call that it answers
        if type(origin) is dict:
            fields = {**fields, "id": origin.get("id"), "name": origin.get("tool_name")}
        return {**fields, "type": _PART_TYPES[name]}
    kind = name or str(fields.get("type", ""))
    if kind.endswith(("Message", "Event")):
        return fields if "role" in fields else {**fields, "type": kind}
    return fields
