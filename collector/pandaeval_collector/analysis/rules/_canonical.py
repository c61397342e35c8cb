"""Compares tool calls and their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

from pandaeval_collector.analysis.rules._failures import PARSED_UP_TO, as_object, failed
from pandaeval_otel.model import ToolCall, ToolDefinition

# Values that differ between calls without a meaning: ids, times, counters, costs.
ARGUMENT_KEYS = frozenset(
    """
    requestid reqid clientrequestid requesttoken clienttoken correlationid idempotencykey idempotencytoken nonce
    timestamp ts requesttime requesttimestamp requestedat sentat servertime generatedat toolcallid callid
    fetchedat retrievedat queriedat elapsed elapsedms duration durationms latency latencyms tookms
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Volatile keys of arguments (lower case, letters and digits only)."""
RESULT_KEYS = ARGUMENT_KEYS | frozenset(
    """
    id uuid guid etag asof now servedby
    attempt attempts retry retries retrycount callcount calls numcalls requestcount requests hits hitcount counter seq
    sequence sequencenumber iteration remainingrequests ratelimitremaining quotaremaining
    cost costusd totalcost credits creditsused usage tokens inputtokens outputtokens totaltokens tokencount
    took runtime processingtime responsetime executiontime elapsedseconds elapsedtime durationseconds latencyseconds
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Volatile keys of results."""
_ID_OR_TIME = re.compile(r"(?:[_-](?:id|uuid|guid|at|ts|timestamp|ms)|[a-z](?:Id|ID|UUID|At|Timestamp|Ms))$")
_CHANGING_TEXT = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # UUID
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",  # ISO 8601 time
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(r"[0-9a-f]{16,}|\d{10,}", re.IGNORECASE)
_WORDS_LEFT = 12
"""Minimum other letters and digits of a text whose ids and times are ignored."""
# The pieces of a result, without the order of parts, ids, times, counters and costs.
_CONTENT_DEPTH = 30
_MOST = 2000
"""Pieces of a result; larger results are not compared."""
_DEPTH = 50
_spell = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_ACKNOWLEDGEMENTS = frozenset({"", "ok", "okay", "done", "success", "successful", "true", "null"})
CODE_KEYS = frozenset({"code", "source", "script", "snippet", "python", "python_code", "source_code", "command", "cmd"})
_COMMENT = re.compile(r"\s*(?:#|//)(?:\s.*)?")
_BLANKS = re.compile(r"(?<=\S)[ \t]+")
_SAYS_NOTHING = frozenset({"", "{}", "[]", "null", "None", "undefined"})


@lru_cache(maxsize=4096)
def in_arguments(key: str) -> bool:
    """Return whether the argument ``key`` is volatile, such as an ID or time."""
    return _NOT_ALNUM.sub("", key.lower()) in ARGUMENT_KEYS


@lru_cache(maxsize=4096)
def in_results(key: str) -> bool:
    """Return whether a new value of the result's ``key`` is no news."""
    return _NOT_ALNUM.sub("", key.lower()) in RESULT_KEYS or _ID_OR_TIME.search(key) is not None


def masked_error(text: str | None) -> str | None:
    """Mask IDs, timestamps and long numbers in an error text."""
    return None if text is None else _LONG_NUMBER.sub("*", _CHANGING_TEXT.sub("*", text))


def masked(text: str) -> str:
    """Mask UUIDs and timestamps, unless the text has few other letters and digits."""
    if len(text) < 16 or text.count("-") < 2 or _CHANGING_TEXT.search(text) is None:
        return text
    left = _CHANGING_TEXT.sub("*", text)
    return left if len(_NOT_ALNUM.sub("", left.lower())) >= _WORDS_LEFT else text


def pieces(result: Any) -> tuple[str, ...] | None:
    """Return a result's sorted values with keys, or a text's lines.

    Volatile values are left out unless all are volatile. ``None`` if too large or too deep.
    """
    if isinstance(result, str) and len(result) <= PARSED_UP_TO and result.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            result = json.loads(result)
    for drop in (True, False):
        try:
            found = [*islice(_leaves(result, "", _CONTENT_DEPTH, drop), _MOST + 1)]
        except _TooMuchError:
            return None
        if found:
            return tuple(sorted(found)) if len(found) <= _MOST else None
    return ()


class _TooMuchError(ValueError):
    """Too many, too deep or unprintable pieces."""


def _leaves(value: Any, path: str, depth: int, drop: bool) -> Iterator[str]:
    if depth == 0:
        raise _TooMuchError
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if not (drop and in_results(str(key))):
                yield from _leaves(item, f"{path}.{key}", depth - 1, drop)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _leaves(item, path, depth - 1, drop)
    elif isinstance(value, str):
        yield from _lines(value, path)
    else:
        yield f"{path}={_number(value)!r}"


def _lines(text: str, path: str) -> Iterator[str]:
    if "\n" not in text:
        yield f"{path}={masked(text.strip())}"
        return
    for line in text.splitlines():
        if line.strip():
            yield f"{path}={masked(line.strip())}"


def _number(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, int) and not -(10**300) < value < 10**300:
        raise _TooMuchError  # so long that it cannot be spelled out
    return value


def canonical_arguments(arguments: Any, defaults: Mapping[str, Any] | None = None) -> str | None:
    """Canonicalise arguments; ``None`` if too deep or with huge integers.

    Ignores key order, number format, white space, empty values, ``defaults``, volatile keys unless all are volatile,
    and comments and quote style of code.
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


def defaults_of(tool: ToolDefinition) -> dict[str, Any] | None:
    """Return the defaults of a tool's definition, spelled as in arguments; ``None`` without any."""
    properties = tool.parameters.get("properties") if isinstance(tool.parameters, dict) else None
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
    """Return whether two calls have equivalent answers; ``None`` if not captured."""
    if not (has_outcome(one) and has_outcome(other)):
        return None
    if failed(one) != failed(other):
        return False
    if one.error != other.error and masked_error(one.error) != masked_error(other.error):
        return False
    if failed(one) and isinstance(one.result, str) and isinstance(other.result, str):
        return one.result == other.result or masked_error(one.result) == masked_error(other.result)
    try:
        if one.result == other.result:
            return True
    except RecursionError:  # too deeply nested to compare, so not a repetition
        return False
    result_pieces = pieces(one.result)
    return result_pieces is not None and result_pieces == pieces(other.result)


def is_acknowledgement(result: Any) -> bool:
    """Return whether a result is a bare acknowledgement (``ok``, ``true``, null, or an object of these)."""
    parsed = as_object(result)
    if parsed is not None:
        return all(_bare_value(value) for key, value in parsed.items() if not in_results(str(key)))
    return _bare_value(result)


def _bare_value(value: Any) -> bool:
    if isinstance(value, str):
        return _NOT_ALNUM.sub("", value.lower()) in _ACKNOWLEDGEMENTS
    return value is None or value is True or value == []


def has_outcome(call: ToolCall) -> bool:
    return call.has_result or call.error is not None


def _plain(value: Any, depth: int, drop_volatile: bool) -> Any:
    if depth == 0:
        raise _TooMuchError
    if isinstance(value, str):
        return value.strip() if "\n" in value else " ".join(value.split())
    if isinstance(value, dict):
        return _plain_fields(value, depth, drop_volatile)
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1, drop_volatile) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, bool | int | float) else repr(value)


def _plain_fields(value: Mapping[Any, Any], depth: int, drop_volatile: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if item is None or (drop_volatile and in_arguments(name)):
            continue
        plain = _plain(item, depth - 1, drop_volatile)
        if isinstance(plain, str) and name.lower() in CODE_KEYS:
            plain = statements(plain)
        if plain or not isinstance(plain, str | dict | list):
            fields[name] = plain
    return fields


def statements(code: str) -> str:
    """Return code without blank lines and comment lines, with single spaces and double quotes."""
    lines = (_BLANKS.sub(" ", line.rstrip()).replace("'", '"') for line in code.splitlines())
    return "\n".join(line for line in lines if line and _COMMENT.fullmatch(line) is None)
