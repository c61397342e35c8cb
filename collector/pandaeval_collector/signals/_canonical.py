"""When two tool calls ask the same, and when they were answered the same."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from pandaeval_collector.signals._failures import as_object, failed
from pandaeval_otel.model import ToolCall

VOLATILE_KEYS = frozenset(
    """
    requestid reqid clientrequestid requesttoken clienttoken correlationid idempotencykey idempotencytoken nonce
    timestamp ts requesttime requesttimestamp requestedat sentat servertime generatedat toolcallid callid
    fetchedat retrievedat queriedat elapsed elapsedms duration durationms latency latencyms tookms
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""Keys (lower case, letters and digits only) whose values differ from call to call without meaning anything."""

_DEPTH = 50
_spell = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_ACKNOWLEDGEMENTS = frozenset({"", "ok", "okay", "done", "success", "successful", "true", "null"})
_CHANGING_TEXT = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # UUID
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?"  # ISO 8601 time
    r"|[0-9a-f]{16,}|\d{10,}",  # other ids, seconds since 1970
    re.IGNORECASE,
)


def canonical_arguments(arguments: Any) -> str | None:
    """One spelling for all equivalent arguments; ``None`` where they cannot be spelled out (nested too deep, or with
    integers of thousands of digits).

    The order of keys, surrounding blanks, ``1`` or ``1.0``, keys with a null value and volatile keys make no
    difference. When nothing but volatile keys was passed, they are the subject of the call, and count.
    """
    try:
        plain = _plain(arguments, _DEPTH, drop_volatile=True)
        if not plain and arguments:
            plain = _plain(arguments, _DEPTH, drop_volatile=False)
        return _spell(plain or {})
    except ValueError:
        return None


def rough_arguments(arguments: Any) -> frozenset[str]:
    """The texts that stand in arguments: the same for all that have one spelling, and told in no time."""
    if not isinstance(arguments, dict):
        return frozenset()
    return frozenset(
        [value.strip() for key, value in arguments.items() if isinstance(value, str) and not _is_volatile(str(key))]
    )


def same_answer(one: ToolCall, other: ToolCall) -> bool | None:
    """Whether two calls were answered alike; ``None`` when an answer was not captured.

    Volatile keys at the top of a result make no difference; neither do ids and times inside the text of an error.
    """
    if not (_answered(one) and _answered(other)):
        return None
    if failed(one) != failed(other):
        return False
    if _masked(one.error) != _masked(other.error):
        return False
    if failed(one) and isinstance(one.result, str) and isinstance(other.result, str):
        return _masked(one.result) == _masked(other.result)
    return _same(one.result, other.result)


def bare(result: Any) -> bool:
    """Whether a result is an acknowledgement that says nothing about the state of things (``ok``, ``true``, null, or an
    object of nothing else)."""
    parsed = as_object(result)
    if parsed is not None:
        return all(_bare_value(value) for value in parsed.values())
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
        return value.strip()
    if isinstance(value, dict):
        return {
            str(key): _plain(item, depth - 1, drop_volatile)
            for key, item in value.items()
            if item is not None and not (drop_volatile and _is_volatile(str(key)))
        }
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1, drop_volatile) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, bool | int | float) else repr(value)


def _masked(text: str | None) -> str | None:
    return None if text is None else _CHANGING_TEXT.sub("*", text)


def _same(one: Any, other: Any) -> bool:
    try:
        if one == other:
            return True
        left, right = _top(one), _top(other)
        return bool(left) and left == right
    except RecursionError:  # nested deeper than the interpreter compares: cannot be told, so not a repetition
        return False


def _top(result: Any) -> dict[str, Any] | None:
    parsed = as_object(result)
    if parsed is None:
        return None
    return {key: value for key, value in parsed.items() if not _is_volatile(str(key))}


@lru_cache(maxsize=4096)
def _is_volatile(key: str) -> bool:
    return _NOT_ALNUM.sub("", key.lower()) in VOLATILE_KEYS
