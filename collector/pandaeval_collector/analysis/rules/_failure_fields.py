"""Whether an object that a tool gave back tells of a failure, by its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pandaeval_collector.analysis.rules._failure_text import FailureSign, text_tells

_FALSE_IF_FAILED = ("success", "ok", "succeeded", "successful")
_TRUE_IF_FAILED = ("isError", "is_error", "iserror", "hasError", "has_error", "timed_out", "timedOut")
_ERRORS = (
    *("error", "error_message", "errorMessage", "error_msg", "errorType", "error_type", "error.type", "error_code"),
    *(
        "Error",
        "ERROR",
        "Exception",
        "errorMessages",
        "error_messages",
        "errorCode",
        "exception",
        "fault",
        "faultstring",
        "error_description",
        "traceback",
        "errno",
    ),
)
_STATES = ("status", "outcome", "state")
_BAD = frozenset(
    {
        *("error", "fail", "failed", "failure", "rejected", "denied", "declined", "refused", "forbidden"),
        *("unauthorized", "timeout", "timed_out", "aborted", "invalid", "exception"),
    }
)
_HTTP = ("status_code", "statusCode", "http_status", "httpStatus", "http_code", "httpCode", "status")
_EXITS = ("exit_code", "exitCode", "exit_status", "returncode", "return_code", "returnCode")
_SAYS_WHY = frozenset(
    {
        *(
            "message",
            "msg",
            "detail",
            "details",
            "reason",
            "errors",
            "title",
            "description",
            "hint",
            "help",
            "instance",
        ),
        *(
            "code",
            "type",
            "__type",
            "Message",
            "name",
            "stack",
            "trace",
            "cause",
            "retryable",
            "retry_after",
            "retryAfter",
            "timestamp",
        ),
        *(
            "path",
            "method",
            "request_id",
            "requestId",
            "trace_id",
            "traceId",
            "id",
            "jsonrpc",
            "result",
            "data",
            "body",
        ),
        *_ERRORS,
        *_STATES,
        *_HTTP,
        *_TRUE_IF_FAILED,
        *_FALSE_IF_FAILED,
    }
)
"""Fields that an answer about an error has; others are those of a record of something."""
_OF_ERRORS = frozenset({*_ERRORS, "message", "msg", "detail", "details", "reason", "errors", "error_codes"})
_MOST_OTHERS = 2
"""More fields of other things than this make a record, in which an error may be what was asked for."""
_NONE = frozenset({"", "none", "null", "no", "no error", "false", "0", "ok", "n/a", "nil", "-", "success"})
_CODE = re.compile(
    r"E[A-Z]{4,}|[A-Z_]*(?:ERR|ERROR|FAIL|DENIED|INVALID|TIMEOUT|TIMED_OUT|NOT_FOUND|EXCEEDED|EXHAUSTED|UNAVAILABLE|"
    r"FORBIDDEN|UNAUTHORIZED|UNAUTHENTICATED|CONFLICT|ABORTED|INTERNAL)[A-Z_]*"
)
_SIGNALLED = 126
"""From here on a shell's exit code says that a command did not run, or was killed."""


_TELLING = frozenset(
    {
        *_FALSE_IF_FAILED,
        *_TRUE_IF_FAILED,
        *_ERRORS,
        *_STATES,
        *_HTTP,
        *_EXITS,
        "code",
        "errors",
        "detail",
        "__type",
        "type",
    }
)


def fields_tell(found: Mapping[str, Any]) -> FailureSign:
    """Reads what an object tells by itself. ``error: 12`` measures something; an error among many fields of something
    else may be what was asked for; an exit code of 1 is what many programs find."""
    if _TELLING.isdisjoint(found):
        return FailureSign.NOTHING
    if any(_is(found.get(key), True) for key in _TRUE_IF_FAILED):
        return FailureSign.FAILED
    if any(_is(found.get(key), False) for key in _FALSE_IF_FAILED):
        return FailureSign.FAILED
    if any(_is_message(key, found[key]) for key in _ERRORS if key in found):
        return _in_a_record(found)
    return max((_state(found), _http(found), _exit(found), _several(found), _coded(found)), key=_weight)


def _weight(told: FailureSign) -> int:
    return told.value


def _is(value: object, wanted: bool) -> bool:
    return value is wanted or (isinstance(value, str) and value.strip().casefold() == str(wanted).casefold())


def _is_message(key: str, error: object) -> bool:
    """Whether the value of a field for errors tells of one; a number may be a measured error, unless it is a code."""
    match error:
        case bool():
            return error
        case int():
            return error != 0 and key in ("error_code", "errorCode", "errno")
        case str():
            return error.strip().casefold() not in _NONE and not _is_number(error)
        case dict():
            return any(isinstance(each, str | dict | list) and each for each in error.values()) or "code" in error
        case list():
            return any(isinstance(each, str | dict) and each for each in error)
    return False


def _is_number(text: str) -> bool:
    try:
        float(text.strip().rstrip("%"))
    except ValueError:
        return False
    return True


def _in_a_record(found: Mapping[str, Any]) -> FailureSign:
    others = sum(1 for key, value in found.items() if key not in _SAYS_WHY and value not in (None, "", [], {}))
    return FailureSign.FAILED if others <= _MOST_OTHERS else FailureSign.UNSURE


def _state(found: Mapping[str, Any]) -> FailureSign:
    for key in _STATES:
        said = found.get(key)
        if isinstance(said, str) and said.strip().casefold() in _BAD:
            told_why = not _OF_ERRORS.isdisjoint(found) or "code" in found
            alone = len(found) == 1 or (told_why and _in_a_record(found) is FailureSign.FAILED)
            return FailureSign.FAILED if alone else FailureSign.UNSURE
    return FailureSign.NOTHING


def _http(found: Mapping[str, Any]) -> FailureSign:
    for key in _HTTP:
        code = found.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
            return _in_a_record(found)
    code = found.get("code")
    if isinstance(code, int) and (400 <= code < 600 or -32800 < code <= -32000) and not _OF_ERRORS.isdisjoint(found):
        return _in_a_record(found)
    return FailureSign.NOTHING


def _exit(found: Mapping[str, Any]) -> FailureSign:
    for key in _EXITS:
        code = found.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            said = found.get("stderr")
            named = isinstance(said, str) and text_tells(said) is FailureSign.FAILED
            return FailureSign.FAILED if named or code >= _SIGNALLED or code < 0 else FailureSign.UNSURE
    return FailureSign.NOTHING


def _coded(found: Mapping[str, Any]) -> FailureSign:
    """A code in capitals beside a message (``ECONNREFUSED``, ``INVALID_ARGUMENT``), and what validators list."""
    code, detail, kind = found.get("code"), found.get("detail"), found.get("__type", found.get("type"))
    if isinstance(kind, str) and kind.endswith(("Exception", "Error")):
        return _in_a_record(found)
    if isinstance(code, str) and _CODE.fullmatch(code) and not _OF_ERRORS.isdisjoint(found):
        return _in_a_record(found)
    if isinstance(detail, list) and detail and all(isinstance(each, dict) and "msg" in each for each in detail):
        return _in_a_record(found)
    return FailureSign.NOTHING


def _several(found: Mapping[str, Any]) -> FailureSign:
    """A list of errors stands beside no data where a query failed; else it may be what was looked for."""
    errors = found.get("errors")
    if not isinstance(errors, list) or not any(isinstance(each, str | dict) and each for each in errors):
        return FailureSign.NOTHING
    return FailureSign.FAILED if "data" in found and found["data"] is None else FailureSign.UNSURE
