"""Whether a tool call failed: by its status, else by what its result says, since many tools report errors as results.

All that speaks of failed calls asks here: the facts that a judge is told, what limits its verdict, and the rules.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pandaeval_collector.analysis.rules._failure_fields import fields_tell
from pandaeval_collector.analysis.rules._failure_text import LOOKED_AT, FailureSign, text_tells
from pandaeval_otel.model import ToolCall

__all__ = ["PARSED_UP_TO", "FailureSign", "as_object", "error_of", "failed", "is_absence", "says_error", "tells"]

PARSED_UP_TO = 20_000
"""Characters; longer texts are taken as they stand."""
_PYTHON_UP_TO = 4_000
_WRAPPED = re.compile(
    r"""\s*[{\[]\s*(?:\{\s*)?["'](?:result|output|content|text|response|value|data|[mM]essage|detail|(?:__)?type)["']"""
)
_STATE = re.compile(
    r"""(?:status|state)["']\s*:\s*(?:[45]\d\d|["'](?i:err|fail|re[jf]|de[nc]|forb|unauth|time|abort|inval|exce))"""
)
_CODE = re.compile(r"""code["']\s*:\s*(?:-?[345]\d|["'][A-Z_]{5})""")
_FIELDS = (
    *("rror", "rrno", '"success', '"succeeded', '"ok"', "xception", "ault", "raceback", "imed_out", "imedOut"),
    *("exit", "returncode", "return_code", "returnCode", "tatus_code", "tatusCode", "http_", "httpS", "httpC"),
    *("'success", "'succeeded", "'ok'", '"outcome', "'outcome"),
)
"""Parts of the names of fields that may tell of a failure."""
_ABSENT = re.compile(
    r"not[ _]?found|no (?:such|matching|results?|match|records?)\b|does(?: not|n't) exist|no longer exists|unknown \w+",
    re.IGNORECASE,
)
_WRAPPERS = frozenset(
    {"result", "output", "content", "text", "response", "value", "data", "message", "detail", "Message"}
)
_DEPTH = 4


def failed(call: ToolCall) -> bool:
    """Whether the call surely failed: by its status, or by a result that is an error message."""
    return call.error is not None or says_error(call.result)


def tells(call: ToolCall) -> FailureSign:
    """Reads what the call tells of its failure; ``UNSURE``: its result may be read both ways."""
    return FailureSign.FAILED if call.error is not None else _result_tells(call.result, _DEPTH)


def error_of(call: ToolCall) -> str:
    """Reads what went wrong in a failed call; ``""`` where it does not tell."""
    return call.error or _told(call.result, _DEPTH)


def is_absence(call: ToolCall) -> bool:
    """Whether a failed call says that what was looked for is not there: to whoever only looked, that is an answer."""
    return _ABSENT.search(error_of(call)[:LOOKED_AT]) is not None


def says_error(result: Any) -> bool:
    """Whether a result is the message of an error. One that speaks of errors among other things is none."""
    return _result_tells(result, _DEPTH) is FailureSign.FAILED


def _result_tells(result: Any, depth: int) -> FailureSign:
    if isinstance(result, str):
        return _string_tells(result, depth)
    if depth == 0:
        return FailureSign.NOTHING
    if isinstance(result, list):
        return _result_tells(result[0], depth - 1) if len(result) == 1 else FailureSign.NOTHING
    if not isinstance(result, dict):
        return FailureSign.NOTHING
    told = fields_tell(result)
    if told is not FailureSign.NOTHING or len(result) > 2 or _WRAPPERS.isdisjoint(result):
        return told
    inner = [value for key, value in result.items() if key in _WRAPPERS]
    return _result_tells(inner[0], depth - 1) if len(inner) == 1 else FailureSign.NOTHING


def _string_tells(text: str, depth: int) -> FailureSign:
    start = text[:LOOKED_AT].lstrip()
    if not start.startswith(("{", "[{", '["')):
        return text_tells(text)
    if not start.startswith('["') and not _may_say_error(
        text
    ):  # as nearly always, in a fraction of the time that parsing takes
        return FailureSign.NOTHING
    parsed = _parsed(text)
    return text_tells(text) if parsed is None else _result_tells(parsed, depth)


def _may_say_error(text: str) -> bool:
    if _WRAPPED.match(text) is not None or _STATE.search(text) is not None or _CODE.search(text) is not None:
        return True
    return any(field in text for field in _FIELDS)


def _parsed(text: str) -> Any:
    """The value that a text spells as JSON, or a short one as Python prints it; ``None`` where it spells none."""
    if len(text) > PARSED_UP_TO:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if len(text) > _PYTHON_UP_TO or "'" not in text:
            return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def as_object(result: Any) -> dict[str, Any] | None:
    """Reads a result as a JSON object; ``None`` where it is neither one nor the text of one."""
    if isinstance(result, str) and len(result) <= PARSED_UP_TO and result.lstrip().startswith("{"):
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    return result if isinstance(result, dict) else None


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
