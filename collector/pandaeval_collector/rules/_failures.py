"""Whether a tool call failed, by its status or by what its result says, since many tools report errors as results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pandaeval_otel.model import ToolCall

PARSED_UP_TO = 20_000
"""Characters; longer texts are taken as they stand."""
_OPENING = 300
_ERROR_TEXT = re.compile(
    r"[\s\"'(\[*]*(?:call id: \S+\s+)?(?:an? (?:unexpected |internal )?)?(?:"
    r"error(?:\s+code)?\s*(?:[:!-]|\d|$|executing|while|during|occurred|invoking|calling|running|in\b)"
    r"|(?:tool |function )?(?:execution |call )?(?:error|failed)\s*[:(]"
    r"|failed to (?:invoke|execute|call|run)\b"
    r"|exception\s*(?::|occurred|$)"
    r"|traceback \(most recent call last\)"
    r"|[a-z_.]*[a-z](?:error|exception)\s*[:(]"
    r")",
    re.IGNORECASE,
)
"""How texts of errors begin. A text that goes on from "Error" as prose does is a finding about errors."""
_MAY_SAY_ERROR = re.compile(
    r'"(?:error|isError|is_error|success|ok)"|"status"\s*:\s*"(?i:error)"'
    r'|^\s*\{\s*"(?:result|output|content|text|response|value|data|message)"'
)
"""What the text of an object that says so holds."""
_ABSENT = re.compile(
    r"not[ _]?found|no (?:such|matching|results?|match|records?)\b|does(?: not|n't) exist|no longer exists|unknown \w+",
    re.IGNORECASE,
)
_WRAPPERS = frozenset({"result", "output", "content", "text", "response", "value", "data", "message"})
_SAYS_WHY = frozenset(
    {"message", "msg", "error_message", "detail", "details", "reason", "error_code", "code", "errors"}
)
_DEPTH = 4


def failed(call: ToolCall) -> bool:
    """Whether the call says that it failed: by its status, or by a result that is an error message."""
    return call.error is not None or says_error(call.result)


def error_of(call: ToolCall) -> str:
    """What a failed call says went wrong; ``""`` where it does not tell."""
    return call.error or _told(call.result, _DEPTH)


def is_absence(call: ToolCall) -> bool:
    """Whether a failed call says that what was looked for is not there: to whoever only looked, that is an answer."""
    return _ABSENT.search(error_of(call)[:_OPENING]) is not None


def says_error(result: Any, depth: int = _DEPTH) -> bool:
    """Whether a result is the message of an error. One that speaks of errors among other things is none."""
    if isinstance(result, str):
        if not result.lstrip().startswith("{"):
            return _ERROR_TEXT.match(result, 0, _OPENING) is not None
        if _MAY_SAY_ERROR.search(result) is None:  # as nearly always, told in a fraction of the time that parsing takes
            return False
        parsed = as_object(result)
        return _ERROR_TEXT.match(result, 0, _OPENING) is not None if parsed is None else says_error(parsed, depth)
    if depth == 0:
        return False
    if isinstance(result, list):
        return len(result) == 1 and says_error(result[0], depth - 1)
    if not isinstance(result, dict):
        return False
    if result.get("isError") or result.get("is_error") or result.get("success") is False or result.get("ok") is False:
        return True
    if _is_message(result.get("error")) or _states_error(result):
        return True
    if len(result) > 2:
        return False
    inner = [value for key, value in result.items() if key in _WRAPPERS]
    return len(inner) == 1 and says_error(inner[0], depth - 1)


def as_object(result: Any) -> dict[str, Any] | None:
    """A result as a JSON object, if it is one or is the text of one."""
    if isinstance(result, str) and len(result) <= PARSED_UP_TO and result.lstrip().startswith("{"):
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    return result if isinstance(result, dict) else None


def _is_message(error: Any) -> bool:
    """Whether the value of a key ``error`` tells of one; a number may be a measured error."""
    return error is True or (
        isinstance(error, str | dict | list) and bool(error) and error not in ("none", "None", "0")
    )


def _states_error(result: Mapping[str, Any]) -> bool:
    status = result.get("status")
    if not isinstance(status, str) or status.casefold() != "error":
        return False
    return len(result) == 1 or not _SAYS_WHY.isdisjoint(result)


def _told(result: Any, depth: int) -> str:
    if isinstance(result, str):
        parsed = as_object(result)
        return result if parsed is None else _told(parsed, depth)
    if depth == 0:
        return ""
    if isinstance(result, list):
        return _told(result[0], depth - 1) if len(result) == 1 else ""
    if not isinstance(result, dict):
        return ""
    for key in ("error", "error_message", "message", "detail", "reason", *sorted(_WRAPPERS)):
        if told := _told(result.get(key), depth - 1):
            return told
    return ""
