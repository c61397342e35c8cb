"""When two tool calls ask the same, and when they were answered the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.analysis.rules._content import pieces
from pandaeval_collector.analysis.rules._failures import as_object, failed
from pandaeval_collector.analysis.rules._volatile import in_arguments, in_results, masked_error
from pandaeval_otel.model import ToolCall, ToolDefinition

_DEPTH = 50
_spell = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_ACKNOWLEDGEMENTS = frozenset({"", "ok", "okay", "done", "success", "successful", "true", "null"})
CODE_KEYS = frozenset({"code", "source", "script", "snippet", "python", "python_code", "source_code", "command", "cmd"})
_COMMENT = re.compile(r"\s*(?:#|//)(?:\s.*)?")
_BLANKS = re.compile(r"(?<=\S)[ \t]+")
_SAYS_NOTHING = frozenset({"", "{}", "[]", "null", "None", "undefined"})


def canonical_arguments(arguments: Any, defaults: Mapping[str, Any] | None = None) -> str | None:
    """Spells all equivalent arguments alike; ``None`` where they cannot be spelled out (nested too deep, or with
    integers of thousands of digits).

    The order of keys, blanks around and between words, ``1`` or ``1.0``, empty values (``{}``, ``{"": ""}``, null),
    values that are the ``defaults`` of the definition, blank lines, comments, blanks and kinds of quotes of code, and
    volatile keys make no difference. When nothing but volatile keys was passed, they are the subject of the call, and
    count.
    """
    if isinstance(arguments, str) and arguments.strip() in _SAYS_NOTHING:
        arguments = None
    try:
        plain = _plain(arguments, _DEPTH, drop_volatile=True)
        if not plain and arguments:
            plain = _plain(arguments, _DEPTH, drop_volatile=False)
        if defaults and isinstance(plain, dict):
            plain = {key: value for key, value in plain.items() if key not in defaults or value != defaults[key]}
        return _spell(plain or {})
    except ValueError:
        return None


def rough_arguments(calls: Sequence[ToolCall]) -> list[frozenset[str]]:
    """The texts that stand in the arguments of each call: the same for all that have one spelling (defaults apart), and
    told in no time. Of a text count its words, coarser than any spelling of it; nothing of several lines."""
    found = []
    for call in calls:
        texts: set[str] = set()
        if isinstance(call.arguments, dict):
            for key, value in call.arguments.items():
                if not isinstance(value, str) or in_arguments(str(key)) or "\n" in (text := value.strip()):
                    continue
                if text:
                    texts.add(" ".join(text.split()).replace("'", '"'))
        found.append(frozenset(texts))
    return found


def defaults_of(tool: ToolDefinition | None) -> dict[str, Any] | None:
    """The defaults that a tool's definition names, as they are spelled in arguments; ``None`` where it names none."""
    schema = tool.parameters if tool is not None else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return None
    try:
        found = {
            str(key): _plain(each["default"], _DEPTH, drop_volatile=True)
            for key, each in properties.items()
            if isinstance(each, dict) and "default" in each
        }
    except ValueError:
        return None
    return found or None


def same_answer(one: ToolCall, other: ToolCall) -> bool | None:
    """Whether two calls were answered alike; ``None`` when an answer was not captured.

    The order of a result's parts makes no difference, neither do ids, times, counters and costs in it.
    """
    if not (_answered(one) and _answered(other)):
        return None
    if failed(one) != failed(other):
        return False
    if masked_error(one.error) != masked_error(other.error):
        return False
    if failed(one) and isinstance(one.result, str) and isinstance(other.result, str):
        return masked_error(one.result) == masked_error(other.result)
    return _same(one.result, other.result)


def bare(result: Any) -> bool:
    """Whether a result is an acknowledgement that says nothing about the state of things (``ok``, ``true``, null, or an
    object of nothing else)."""
    parsed = as_object(result)
    if parsed is not None:
        return all(_bare_value(value) for key, value in parsed.items() if not in_results(str(key)))
    return _bare_value(result)


class _TooDeepError(ValueError):
    pass


def _bare_value(value: Any) -> bool:
    if isinstance(value, str):
        return _NOT_ALNUM.sub("", value.lower()) in _ACKNOWLEDGEMENTS
    return value is None or value is True or value == []


def _answered(call: ToolCall) -> bool:
    return call.has_result or call.error is not None


def _plain(value: Any, depth: int, drop_volatile: bool) -> Any:
    if depth == 0:
        raise _TooDeepError
    if isinstance(value, str):
        return value.strip() if "\n" in value else " ".join(value.split())
    if isinstance(value, dict):
        return _plain_map(value, depth, drop_volatile)
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1, drop_volatile) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, bool | int | float) else repr(value)


def _plain_map(value: Mapping[Any, Any], depth: int, drop_volatile: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if item is None or (drop_volatile and in_arguments(name)):
            continue
        plain = _plain(item, depth - 1, drop_volatile)
        if isinstance(plain, str) and name.lower() in CODE_KEYS:
            plain = statements(plain)
        if not isinstance(plain, str | dict | list) or plain:
            found[name] = plain
    return found


def statements(code: str) -> str:
    """Removes from code what does not change what it does: blank lines, comments, blanks, the kind of quotes."""
    lines = (_BLANKS.sub(" ", line.rstrip()).replace("'", '"') for line in code.splitlines())
    return "\n".join(line for line in lines if line and _COMMENT.fullmatch(line) is None)


def _same(one: Any, other: Any) -> bool:
    try:
        if one == other:
            return True
    except RecursionError:  # nested deeper than the interpreter compares: cannot be told, so not a repetition
        return False
    said = pieces(one)
    return said is not None and said == pieces(other)
