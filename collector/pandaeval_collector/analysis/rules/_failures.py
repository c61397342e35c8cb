"""Decides whether a tool call failed, by its status, otherwise by its result."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from pandaeval_collector.analysis.rules._failure_text import (
    LOOKED_AT,
    FailureSign as FailureSign,
    sign_in_text as sign_in_text,
    sign_of_exit,
)
from pandaeval_collector.analysis.rules._log_readers import reads_log
from pandaeval_collector.analysis.rules._verbs import Nature, nature, only_looks, runs_code
from pandaeval_otel.model import ToolCall

# Whether the fields of a returned object report a failure.
_FALSE_IF_FAILED = ("success", "ok", "succeeded", "successful")
_TRUE_IF_FAILED = ("isError", "is_error", "iserror", "hasError", "has_error", "timed_out", "timedOut")
_ERRORS = tuple(
    """
    error error_message errorMessage error_msg errorType error_type error.type error_code Error ERROR Exception
    errorMessages error_messages errorCode exception fault faultstring error_description traceback errno
    """.split()  # noqa: SIM905 - a readable list of words
)
_STATES = ("status", "outcome", "state")
_BAD = frozenset(
    """
    error fail failed failure rejected denied declined refused forbidden unauthorized timeout timed_out aborted invalid
    exception
    """.split()  # noqa: SIM905 - a readable list of words
)
_HTTP = ("status_code", "statusCode", "http_status", "httpStatus", "http_code", "httpCode", "status")
_EXITS = ("exit_code", "exitCode", "exit_status", "returncode", "return_code", "returnCode")
_SAYS_WHY = {*_ERRORS, *_STATES, *_HTTP, *_TRUE_IF_FAILED, *_FALSE_IF_FAILED}.union(
    """
    message msg detail details reason errors title description hint help instance code type __type Message name stack
    trace cause retryable retry_after retryAfter timestamp path method request_id requestId trace_id traceId id jsonrpc
    result data body url content_type contentType headers text
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Fields of error objects; other fields belong to records."""
_OF_ERRORS = frozenset({*_ERRORS, "message", "msg", "detail", "details", "reason", "errors", "error_codes"})
_MOST_OTHERS = 2
"""With more other fields, the object is a record, in which an error may be requested data."""
_NONE = frozenset({"", "none", "null", "no", "no error", "false", "0", "ok", "n/a", "nil", "-", "success"})
_FIELD_CODE = re.compile(
    r"E[A-Z]{4,}|(?>[A-Z_]*?(?:ERR|ERROR|FAIL|DENIED|INVALID|TIMEOUT|TIMED_OUT|NOT_FOUND|EXCEEDED|EXHAUSTED|UNAVAILABLE|"
    r"FORBIDDEN|UNAUTHORIZED|UNAUTHENTICATED|CONFLICT|ABORTED|INTERNAL))[A-Z_]*+"
)
PARSED_UP_TO = 20_000
"""Maximum characters of a parsed text."""
_PYTHON_UP_TO = 4_000
_ABSENT = re.compile(
    r"(?<!command )(?<!tool )(?<!function )not[ _]?found|no (?:such(?! (?:tool|function)\b)|matching|results?|match|"
    r"records?)\b|does(?: not|n't) exist|no longer exists|unknown (?!tool|function|command|method)\w+",
    re.IGNORECASE,
)
_WRAPPERS = frozenset(
    {"result", "output", "content", "text", "response", "value", "data", "message", "detail", "Message"}
)
_DEPTH = 4
_VERCEL_DENIAL = "execution-denied"
"""The type of the result that the Vercel AI SDK gives a call that a person refused."""


def sign_in_fields(found: Mapping[str, Any]) -> FailureSign:
    """Read the failure sign in an object's own fields. Measured errors (``error: 12``) are no failure."""
    if any(_is(found.get(key), True) for key in _TRUE_IF_FAILED):
        return FailureSign.FAILED
    if any(_is(found.get(key), False) for key in _FALSE_IF_FAILED):
        return FailureSign.FAILED
    if any(_is_message(key, found[key]) for key in _ERRORS if key in found):
        return _in_a_record(found)
    return max(_signs(found), key=attrgetter("value"), default=FailureSign.NOTHING)


def _is(value: object, wanted: bool) -> bool:
    return value is wanted or (isinstance(value, str) and value.strip().casefold() == str(wanted).casefold())


def _is_message(key: str, error: object) -> bool:
    match error:
        case bool():
            return error
        case int():
            return error != 0 and key in ("error_code", "errorCode", "errno")
        case str():
            if error.strip().casefold() in _NONE:
                return False
            with suppress(ValueError):
                float(error.strip().rstrip("%"))
                return False
            return True
        case dict():
            return any(isinstance(each, str | dict | list) and each for each in error.values()) or "code" in error
        case list():
            return any(isinstance(each, str | dict) and each for each in error)
    return False


def _in_a_record(found: Mapping[str, Any]) -> FailureSign:
    others = sum(1 for key, value in found.items() if key not in _SAYS_WHY and value not in (None, "", [], {}))
    return FailureSign.FAILED if others <= _MOST_OTHERS else FailureSign.UNSURE


def _signs(found: Mapping[str, Any]) -> Iterator[FailureSign]:
    explained = not _OF_ERRORS.isdisjoint(found)
    if any(isinstance(state := found.get(key), str) and state.strip().casefold() in _BAD for key in _STATES):
        yield _of_state(found, explained)
    if _is_http_error(found, explained):
        yield _in_a_record(found)
    if ended := next((number for key in _EXITS if (number := _whole(found, key))), 0):
        printed = found.get("stderr")
        yield sign_of_exit(ended, printed if isinstance(printed, str) else "")
    errors = found.get("errors")
    if isinstance(errors, list) and any(isinstance(error, str | dict) and error for error in errors):
        # A failed query has no data. With data, a list of errors can be the result of a search.
        yield FailureSign.FAILED if "data" in found and found["data"] is None else FailureSign.UNSURE
    if _names_error(found, explained):
        yield _in_a_record(found)


def _whole(found: Mapping[str, Any], key: str) -> int:
    number = found.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def _of_state(found: Mapping[str, Any], explained: bool) -> FailureSign:
    is_explained = (explained or "code" in found) and _in_a_record(found) is FailureSign.FAILED
    return FailureSign.FAILED if is_explained or len(found) == 1 else FailureSign.UNSURE


def _is_http_error(found: Mapping[str, Any], explained: bool) -> bool:
    if any(400 <= _whole(found, key) < 600 for key in _HTTP):
        return True
    code = found.get("code")
    return explained and isinstance(code, int) and (400 <= code < 600 or -32800 < code <= -32000)


def _names_error(found: Mapping[str, Any], explained: bool) -> bool:
    kind, code, detail = found.get("__type", found.get("type")), found.get("code"), found.get("detail")
    if isinstance(kind, str) and kind.endswith(("Exception", "Error")):
        return True
    if explained and isinstance(code, str) and _FIELD_CODE.fullmatch(code):
        return True
    if not isinstance(detail, list) or not detail:
        return False
    return all(isinstance(part, dict) and "msg" in part for part in detail)


def failed(call: ToolCall) -> bool:
    """Return whether the call certainly failed, by status or by an error message as result."""
    return failure_sign(call) is FailureSign.FAILED


def failure_sign(call: ToolCall) -> FailureSign:
    """Return the call's failure sign. A person's refusal is never a failure."""
    sign = _sign_in_result(call.result, _DEPTH)
    if sign is FailureSign.UNSURE and _is_missed(call):
        sign = FailureSign.FAILED
    elif sign is FailureSign.FAILED and _is_log(call):
        sign = FailureSign.UNSURE
    if call.error is not None and sign is not FailureSign.DECLINED and not _is_output(call.error, call.result):
        sign = sign_in_text(call.error)
        return sign if sign is FailureSign.DECLINED else FailureSign.FAILED
    return sign


def _is_missed(call: ToolCall) -> bool:
    """Return whether a change did not happen because its object was missing. For a lookup, that is a finding."""
    if type(call.result) is not str or as_object(call.result) is not None:
        return False
    return nature(call.name) is Nature.CHANGING and not (runs_code(call.name) or only_looks(call.name))


def _is_log(call: ToolCall) -> bool:
    """Return whether the result is several lines of a log, whose errors need not be the call's."""
    found = as_object(call.result)
    if found is not None and not found.keys() <= _WRAPPERS:
        return False
    return "\n" in error_of(call).strip() and reads_log(call)


def _is_output(error: str, result: Any) -> bool:
    """Return whether the error of a command that ended with exit code 0 is only its output."""
    found = as_object(result) or {}
    ended = [found[key] for key in _EXITS if key in found]
    return bool(ended) and all(code == 0 for code in ended) and error.strip() in found.values()


def error_of(call: ToolCall) -> str:
    return call.error or _message_in(call.result, _DEPTH)


def failure_of(call: ToolCall) -> str | None:
    """Return the error of a call, also if only its result reports the failure."""
    if call.error is not None or not failed(call):
        return call.error
    return error_of(call) or "failed"


def reports_not_found(call: ToolCall) -> bool:
    """Return whether a failed lookup reports a missing object, not a missing tool."""
    return _ABSENT.search(error_of(call)[:LOOKED_AT]) is not None


def _sign_in_result(result: Any, depth: int) -> FailureSign:
    if isinstance(result, str):
        return _sign_in_json(result, depth)
    if depth == 0:
        return FailureSign.NOTHING
    if isinstance(result, list):
        return _sign_in_result(result[0], depth - 1) if len(result) == 1 else FailureSign.NOTHING
    if not isinstance(result, dict):
        return FailureSign.NOTHING
    if result.get("type") == _VERCEL_DENIAL:
        return FailureSign.DECLINED
    sign = sign_in_fields(result)
    if sign is FailureSign.FAILED and sign_in_text(_message_in(result, _DEPTH)) is FailureSign.DECLINED:
        return FailureSign.DECLINED
    if sign is FailureSign.NOTHING and type(printed := as_object(result.get("stdout"))) is dict:
        return _sign_in_result(printed, depth - 1)
    if sign is not FailureSign.NOTHING or len(result) > 2 or _WRAPPERS.isdisjoint(result):
        return sign
    inner = [value for key, value in result.items() if key in _WRAPPERS]
    return _sign_in_result(inner[0], depth - 1) if len(inner) == 1 else FailureSign.NOTHING


def _sign_in_json(text: str, depth: int) -> FailureSign:
    start = text[:LOOKED_AT].lstrip()
    if not start.startswith(("{", "[{", '["')):
        return sign_in_text(text)
    parsed = _parsed(text)
    return sign_in_text(text) if parsed is None else _sign_in_result(parsed, depth)


def _parsed(text: str) -> Any:
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
    """Read a result as a JSON object, also from text; else ``None``."""
    if isinstance(result, str) and len(result) <= PARSED_UP_TO and result.lstrip().startswith("{"):
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    return result if isinstance(result, dict) else None


def _message_in(result: Any, depth: int) -> str:
    if isinstance(result, str):
        parsed = as_object(result)
        return result if parsed is None else _message_in(parsed, depth)
    if depth == 0:
        return ""
    if isinstance(result, list):
        return _message_in(result[0], depth - 1) if len(result) == 1 else ""
    if not isinstance(result, dict):
        return ""
    for key in ("error", "error_message", "message", "detail", "reason", *sorted(_WRAPPERS)):
        if message := _message_in(result.get(key), depth - 1):
            return message
    return ""
