"""Reads attribute values: JSON, nested JSON text, Python reprs, placeholders and numbers as text.

Also salvages JSON cut by a length limit. Never raises; unreadable values are unchanged.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pandaeval_otel.base._json import MAX_DEPTH, loads, too_deep

Object = dict[str, Any]
"""A JSON object."""

MAX_JSON = 8 << 20
"""Maximum length of parsed text, in characters. A conversation of a million tokens has about half of it."""
MAX_REPR = 256 << 10
"""Maximum length of a parsed Python repr, in characters. This parser needs far more memory than JSON."""
_COUNTED = 2048
"""Up to this length in characters, counting brackets is faster than walking the structure."""
MAX_ENCODINGS = 3
"""How many times a value may be encoded as JSON (MLflow: 2, AgentCore: 3)."""
MAX_ID = 256
"""Maximum length of an id or name, in characters. Longer values are misplaced content."""

HIDDEN = frozenset(
    {"<elided>", "<redacted>", "[redacted]", "__redacted__", "<not specified>", "<not serializable>", "<omitted>"}
)
"""Placeholders for disabled content capture, in lower case."""
NO_NAME = HIDDEN | {"", "unknown", "n/a", "none", "null", "{}", "[]", "not specified", "undefined"}
"""Placeholders for a missing id or name. They can be real content, but never real ids."""

_LONGEST_NO_NAME = max(map(len, NO_NAME))
LONGEST_PLACEHOLDER = 32
"""Characters; a longer text is no placeholder."""

_OPENERS = frozenset('{["')
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_REPR_PAIRS = {"{": "}", "[": "]", "(": ")"}
# repr() writes no other escapes, and keeps digits and keywords apart: such text is no repr, and Python's parser would
# print a warning about it into the user's terminal. Half a surrogate pair could not be written to a database.
_NOT_REPR = re.compile(r"\\[^\\'\"abfnrtvxuUN0-7\n]|\d(?:and|else|for|if|in|is|not|or)\b|\\[uU](?:0000)?[dD][89a-fA-F]")

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[\[\]{},:]', re.DOTALL)
_JSON_START = re.compile(r'\s*[\[{]\s*["\[{]')
_HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_TRIES = 4
_UNFINISHED = re.compile(
    r"<(?:[\w.]+ )?(?:\w*(?:Handler|Future|Task)\b[^<>]{0,200}\bpending\b[^\n]{0,400}"
    r"|(?:coroutine|generator|async_generator) object [^\n]{1,200})>"
)
"""The repr of a Python object that has not made its value yet."""


def is_prose(text: str) -> bool:
    """Return whether ``text`` looks like prose, by length and first letter. Has false negatives."""
    return len(text) > LONGEST_PLACEHOLDER and text[0] in _LETTERS


def parsed(value: Any) -> Any:
    """Parse JSON text (encoded up to three times) or the repr of a container.

    Only objects, arrays and quoted strings are parsed. Invalid text, text above :data:`MAX_JSON` and nesting above
    :data:`MAX_DEPTH` are unchanged. ``bytes`` become text if they are UTF-8, else ``None``.
    """
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None  # media, which are never kept
    if type(value) is not str:
        return value
    if value[:1] in _LETTERS:  # the first letter tells most texts from everything that is read here
        return value
    for _ in range(MAX_ENCODINGS):
        stripped = value.strip()
        if not stripped or len(stripped) > MAX_JSON:
            return value
        try:
            step = loads(stripped) if stripped[0] in _OPENERS else _from_repr(stripped, value)
        except (ValueError, RecursionError):
            step = _from_repr(stripped, value)
        if type(step) is not str:
            flat = len(stripped) <= _COUNTED and stripped.count("[") + stripped.count("{") <= MAX_DEPTH
            if flat or not too_deep(step):
                return step
            return value
        if step == value:
            return step
        value = step
    return value


def _from_repr(stripped: str, text: str) -> Any:
    if _REPR_PAIRS.get(stripped[0]) != stripped[-1] or len(stripped) > MAX_REPR or _NOT_REPR.search(stripped):
        return text
    try:
        found = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if isinstance(found, (dict, list, tuple)) and not too_deep(found):
        return _as_json(found)
    return text


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key if type(key) is str else str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, set):
        value = sorted(value, key=repr)  # the order of a set differs from process to process
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return repr(value)


def hidden(value: Any) -> bool:
    if type(value) is not str:
        return value is None
    if len(value) <= LONGEST_PLACEHOLDER and value.strip().lower() in HIDDEN:
        return True
    return value[:1] == "<" and _UNFINISHED.fullmatch(value.strip()) is not None


def visible(value: Any) -> Any:
    """Return ``value`` parsed; ``None`` if absent or a placeholder."""
    if hidden(value):
        return None
    return parsed(value)


def identifier(value: Any) -> str:
    """Return an id or name as text, cut at :data:`MAX_ID`; ``""`` for a placeholder."""
    if type(value) is not str:
        return str(value) if type(value) is int else ""
    name: str = value if len(value) <= _LONGEST_NO_NAME else value.strip()
    return _short_name(name) if len(name) <= _LONGEST_NO_NAME else name[:MAX_ID]


@lru_cache(maxsize=1024)
def _short_name(name: str) -> str:
    name = name.strip()
    return "" if name.lower() in NO_NAME else name


def count(value: Any) -> int | None:
    """Return a non-negative whole number from an int, float or digits, else ``None``."""
    if type(value) is int:
        return max(0, value)
    if isinstance(value, (float, str)):
        try:
            return max(0, int(float(value)))
        except (ValueError, OverflowError):
            return None
    return None


def as_list(value: Any) -> list[Any]:
    """Return a list, tuple, JSON array or single item as a list; ``[]`` if absent."""
    value = parsed(value)
    if value is None or value == "":
        return []
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value]


def as_dict(value: Any) -> Object:
    if type(value) is dict:
        return value
    return {}


def dicts_in(value: Any) -> list[Object]:
    return [item for item in as_list(value) if type(item) is dict]


def first(source: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the first non-null value of ``keys``."""
    for key in keys:
        value = source.get(key)
        if value is not None:
            return value
    return None


def starts_like_json(text: str) -> bool:
    return _JSON_START.match(text) is not None


def salvage(text: str) -> list[Any] | Object | None:
    """Return complete items and the start of a cut string from cut JSON, or ``None``."""
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


def _trim(container: list[Any] | Object) -> None:
    if not container:
        return
    last: Any = len(container) - 1 if isinstance(container, list) else next(reversed(container))
    inner = container[last]
    if isinstance(inner, (list, dict)):
        _trim(inner)
        if not inner:
            del container[last]


def _scan(text: str) -> tuple[int, str, deque[tuple[int, str]]] | None:
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
    rest = rest.lstrip()
    if not rest:
        return ""
    if rest[0] != '"':
        return None
    half = _HALF_ESCAPE.search(rest)
    if half:
        rest = rest[: half.start(1)]
    return _HALF_PAIR.sub("", rest) + '"'
