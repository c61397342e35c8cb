"""Reads attribute values of any form: JSON, JSON in JSON, Python's repr, placeholders, numbers as text.

Nothing here raises, whatever the value is. Unreadable values stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_otel.base._json import loads, loads_repr

MAX_JSON = 8 << 20
"""Characters; longer strings are not parsed. A million-token conversation is about half of this."""
MAX_REPR = 256 << 10
"""Most characters of a Python repr that is parsed; the parser needs far more memory per character than JSON does."""
MAX_DEPTH = 64
_SHORT, _LONG = 2 * MAX_DEPTH, 512
"""Characters within which nothing nests deeper than :data:`MAX_DEPTH`, since each bracket needs its pair; and from
which on counting brackets costs more than walking the structure."""
MAX_ENCODINGS = 3
"""How many times a value may be encoded as JSON (MLflow: 2, AgentCore: 3)."""
MAX_ID = 256
"""Most characters of an id or a name; anything longer is misplaced content."""

HIDDEN = frozenset(
    {"<elided>", "<redacted>", "[redacted]", "__redacted__", "<not specified>", "<not serializable>", "<omitted>"}
)
"""Placeholders that instrumentations write for content they were told not to capture (compared in lower case)."""
NO_NAME = HIDDEN | {"", "unknown", "n/a", "none", "null", "{}", "[]", "not specified", "undefined"}
"""Placeholders for a missing id or name. In content these words may be meant, in an id they never are."""

_LONGEST_NO_NAME = max(map(len, NO_NAME))
LONGEST_PLACEHOLDER = 32
"""Characters; a longer text is no placeholder."""

_OPENERS = frozenset('{["')
_CONTAINER_OPENERS = frozenset("{[")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_REPR_PAIRS = {"{": "}", "[": "]", "(": ")"}
# repr() writes no other escapes, and keeps digits and keywords apart: such text is no repr, and Python's parser would
# print a warning about it into the user's terminal. Half a surrogate pair could not be written to a database.
_NOT_REPR = re.compile(r"\\[^\\'\"abfnrtvxuUN0-7\n]|\d(?:and|else|for|if|in|is|not|or)\b|\\[uU](?:0000)?[dD][89a-fA-F]")


def is_prose(text: str) -> bool:
    """Returns whether ``text`` is, by its length and first letter, neither JSON nor a repr nor a placeholder. False
    negatives occur."""
    return len(text) > LONGEST_PLACEHOLDER and text[0] in _LETTERS


def parsed(value: Any) -> Any:
    """Returns the structure that JSON text (encoded up to three times) or the repr of a Python container spells; other
    values unchanged.

    Only objects, arrays and quoted strings count as JSON; a bare ``12`` or ``true`` stays a string, since a text that
    happens to be a number is still a text. Text that does not parse, is longer than :data:`MAX_JSON` or nests deeper
    than :data:`MAX_DEPTH` stays unchanged. ``bytes`` become text if they are UTF-8, else ``None``.
    """
    if type(value) is not str:
        return value if not isinstance(value, bytes) else parsed(text_of_bytes(value))
    opener = value[:1]
    if opener in _CONTAINER_OPENERS:
        size = len(value)
        if size <= MAX_JSON:
            try:
                found = loads(value)
            except (ValueError, RecursionError):
                pass  # blanks around it, a repr, or no structure at all
            else:
                return found if size <= _SHORT or _is_flat(value) or not too_deep(found) else value
    elif opener in _LETTERS:  # the first letter tells most texts from everything that is read here
        return value
    for _ in range(MAX_ENCODINGS):
        step = _decoded(value)
        if type(step) is not str or step == value:
            return step
        value = step
    return value


def _decoded(text: str) -> Any:
    stripped = text.strip()
    if not stripped or len(stripped) > MAX_JSON:
        return text
    if stripped[0] in _OPENERS:
        try:
            found = loads(stripped)
        except (ValueError, RecursionError):
            return _from_repr(stripped, text)
        return found if _is_flat(stripped) or not too_deep(found) else text
    return _from_repr(stripped, text) if stripped[0] == "(" else text


def _is_flat(text: str) -> bool:
    """Returns whether the text, by its length or its brackets, nests no deeper than :data:`MAX_DEPTH`. For a long text
    walking the structure is cheaper, so the answer is no."""
    size = len(text)
    return size <= _SHORT or (size < _LONG and text.count("[") + text.count("{") <= MAX_DEPTH)


def _from_repr(stripped: str, text: str) -> Any:
    if _REPR_PAIRS.get(stripped[0]) != stripped[-1] or len(stripped) > MAX_REPR or _NOT_REPR.search(stripped):
        return text
    try:
        found = loads_repr(stripped)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(stripped)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
    return _as_json(found) if isinstance(found, (dict, list, tuple)) and not too_deep(found) else text


def _as_json(value: Any) -> Any:
    """Returns a Python literal in JSON's types: tuples and sets as lists, keys as text, anything else as its repr."""
    if isinstance(value, dict):
        return {key if type(key) is str else str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, set):
        value = sorted(value, key=repr)  # the order of a set differs from process to process
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int, float)) else repr(value)


def too_deep(value: Any) -> bool:
    """Returns whether ``value`` nests containers deeper than :data:`MAX_DEPTH`, the most that later readers recurse."""
    if type(value) not in _CONTAINERS:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []  # loops, as a comprehension would set up a frame for every level
        for container in level:
            for item in container.values() if type(container) is dict else container:
                if type(item) is not str and type(item) in _CONTAINERS:
                    inner.append(item)  # noqa: PERF401
        if not inner:
            return False
        level = inner
    return True


_CONTAINERS = frozenset({dict, list, tuple})


def text_of_bytes(value: bytes) -> str | None:
    """Returns UTF-8 text, or ``None`` for other bytes: those are media, which are never kept."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def hidden(value: Any) -> bool:
    """Returns whether ``value`` is absent or a placeholder for content that was not captured."""
    if type(value) is not str:
        return value is None
    return len(value) <= LONGEST_PLACEHOLDER and value.strip().lower() in HIDDEN


def identifier(value: Any) -> str:
    """Returns an id or a name as text, cut at :data:`MAX_ID`; ``""`` for a placeholder."""
    if type(value) is not str:
        return str(value) if type(value) is int else ""
    name: str = value.strip()
    if len(name) <= _LONGEST_NO_NAME:
        return "" if name.lower() in NO_NAME else name
    return name if len(name) <= MAX_ID else name[:MAX_ID]


def count(value: Any) -> int | None:
    """Returns a non-negative whole number from an int, a float or digits; ``None`` for anything else."""
    if type(value) is int:
        return max(0, value)
    if isinstance(value, (float, str)):
        try:
            return max(0, int(float(value)))
        except (ValueError, OverflowError):
            return None
    return None


def as_list(value: Any) -> list[Any]:
    """Returns a list from a list or tuple, a JSON array, or one item; ``[]`` for an absent value."""
    value = parsed(value)
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def first(source: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Returns the value of the first of ``keys`` that is there and not null, else ``None``."""
    for key in keys:
        value = source.get(key)
        if value is not None:
            return value
    return None
