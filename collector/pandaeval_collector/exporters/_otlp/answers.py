"""Interprets a sink's answer, after https://opentelemetry.io/docs/specs/otlp/#failures.

Refused credentials are retried rarely.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.exporters import RetryLaterError

_log = logging.getLogger(__name__)
_ASK_AGAIN_S = 300.0
MAX_RESPONSE_BYTES = 4 << 20
"""Maximum bytes read of an answer, to bound memory."""
_RETRY_CODES = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_RETRY_STATUSES = frozenset({429, 502, 503, 504})
_NOT_SERVED_STATUSES = frozenset({404, 405, 501})
_LOCKED_OUT_CODES = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})
_LOCKED_OUT_STATUSES = frozenset({401, 403})
_LOCKED_OUT_PAUSE_S = 5.0
_CURE = "set the variable named in exporters.otlp.headers_env to the headers that the sink requires"
_LONGEST_PAUSE_S = 600.0
"""Maximum retry delay that a sink may request, in seconds."""


class RefusedError(Exception):
    """A permanent rejection. ``reason``: a word, for counting."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BatchTooLargeError(RefusedError):
    """A smaller batch may succeed."""


class NotServedError(RefusedError):
    """The sink does not take this signal."""


def grpc_error(code: grpc.StatusCode, message: str, trailers: Iterable[tuple[str, str | bytes]]) -> Exception:
    pause = None
    for key, value in trailers:
        if pause is None and key == "grpc-status-details-bin" and isinstance(value, bytes):
            info = RetryInfo()
            with contextlib.suppress(DecodeError):
                if any(detail.Unpack(info) for detail in Status.FromString(value).details):
                    pause = _pause(info.retry_delay.ToNanoseconds() / 1e9)
    text = f"{code.name}: {message}"
    if code in _RETRY_CODES or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and pause is not None):
        return RetryLaterError(text, pause)
    if code in _LOCKED_OUT_CODES:
        return RetryLaterError(f"{text}; {_CURE}", _LOCKED_OUT_PAUSE_S)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return NotServedError("unimplemented", text)
    # gRPC has the same status for "too much now" and "always too large". Only the text differs.
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and ("larger than" in message or "too large" in message):
        return BatchTooLargeError("too_large", text)
    return RefusedError(code.name.lower(), text)


def http_error(status: int, headers: Mapping[str, str]) -> Exception:
    text = f"HTTP {status}"
    if status in _RETRY_STATUSES:
        after = headers.get("retry-after", "")
        if after.strip().isdecimal():
            return RetryLaterError(text, _pause(float(after)))
        try:
            return RetryLaterError(text, _pause((parsedate_to_datetime(after) - datetime.now(UTC)).total_seconds()))
        except (TypeError, ValueError):  # no date either
            return RetryLaterError(text)
    if status in _LOCKED_OUT_STATUSES:
        return RetryLaterError(f"{text}; {_CURE}", _LOCKED_OUT_PAUSE_S)
    if status in _NOT_SERVED_STATUSES:
        return NotServedError("unimplemented", text)
    if status == 413:
        return BatchTooLargeError("too_large", text)
    return RefusedError(f"http_{status}", text)


def rejected(response: bytes) -> tuple[int, str]:
    """Return the number of rejected items in an accepted request, and why."""
    try:
        partial = ExportTraceServiceResponse.FromString(response).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_spans, partial.error_message


def _pause(seconds: float) -> float:
    return min(max(0.0, seconds), _LONGEST_PAUSE_S)


class OtlpSink:
    """State of an OTLP sink. An unsupported signal is retried every five minutes."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._ask_at: float | None = None
        self._warned_off = False
        self._complained_of = ""

    @property
    def off(self) -> bool:
        return self._ask_at is not None

    @property
    def left_alone(self) -> bool:
        return self._ask_at is not None and self._clock() < self._ask_at

    def took(self, items: int, response: bytes) -> int:
        """Record an accepted request of ``items`` items. Returns the number of rejected items."""
        if self._ask_at is not None:
            self._ask_at = None
            _log.info("%s is switched on again", self._name)
        count, message = rejected(response)
        if count or message:
            self._complain("partial_success", f"the sink discarded {count} of {items} items: {told(message)}")
        else:
            self._complained_of = ""
        return min(count, items)

    def refused(self, items: int, error: RefusedError) -> None:
        if not isinstance(error, NotServedError):
            self._complain(error.reason, f"{items} items are dropped, because the sink rejects them: {told(error)}")
            return
        self._ask_at = self._clock() + _ASK_AGAIN_S
        if not self._warned_off:
            self._warned_off = True
            _log.warning(
                "%s is switched off, because the sink rejects this signal (%s); if this is correct, set "
                "exporters.%s.enabled: false",
                self._name,
                error,
                self._name,
            )

    def _complain(self, kind: str, text: str) -> None:
        if kind != self._complained_of:
            self._complained_of = kind
            _log.warning("%s: %s", self._name, text)
