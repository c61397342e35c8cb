"""Sends completed traces sequentially, with retries and back-off, on the worker thread.

Never waits; a finished call invokes ``wake``. A gate around gRPC closes before a fork.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from pandaeval_otel._proto.trace_service_pb2 import SubmitTracesResponse
from pandaeval_otel.processor.buffer import Buffer
from pandaeval_otel.processor.connection import channel, cure, retry_after_s
from pandaeval_otel.processor.settings import Settings

_log = logging.getLogger(__name__)

METHOD = "/pandaeval.v1.TraceService/SubmitTraces"
_BACKOFF_S, _MAX_BACKOFF_S, _HURRIED_S = 0.25, 10.0, 0.1
_WARN_AGAIN_S = 600.0
_TEARDOWN_S = 0.05
_LET_US_IN = "set PANDAEVAL_TOKEN to the collector's token, the value of the variable in server.token_env"
_NO_COLLECTOR = "this address does not belong to a PandaEval collector: set PANDAEVAL_ENDPOINT to its gRPC port (4327)"
_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
)
_LOCKED_OUT = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
"""Also retried, because access may be granted later."""


class Submission:
    """Sends the contents of ``buffer``. The worker calls ``open_channel`` before the first submission."""

    def __init__(
        self,
        settings: Settings,
        count: Callable[..., None],
        wake: Callable[[], None],
        open_channel: Callable[[Settings], grpc.Channel] = channel,
    ) -> None:
        self._settings, self._wake = settings, wake
        self._open_channel = open_channel
        self._channel: grpc.Channel | None = None
        self._closed_at = -_TEARDOWN_S
        self._gate = threading.Lock()
        self._paused_by = 0
        self._call: Any = None
        self._not_before = self._better_at = self._tried_at = 0.0
        self._failures = 0
        self._warned_at: float | None = None
        self._refusal = "no answer in time"
        self.buffer = Buffer(settings.buffer_bytes, count)

    def step(self, hurry: bool = False) -> None:
        """Process the finished call, and start the next. ``hurry``: a caller waits."""
        with self._gate:
            if self._call is not None and self._call.done():
                call, self._call = self._call, None
                self._answered(call)
            if self._call is None and self.buffer:
                now = time.monotonic()
                backoff_over = now >= self._better_at or (hurry and now >= self._tried_at + _HURRIED_S)
                if now >= self._not_before and backoff_over:
                    self._tried_at = now
                    self._send()

    def wait_s(self) -> float | None:
        """Return the seconds until a retry; ``None`` to wait for ``wake``."""
        if self._call is not None or not self.buffer:
            return None
        return max(0.0, max(self._not_before, self._better_at) - time.monotonic())

    def close(self) -> None:
        with self._gate:
            self._cancel()
            lost = self.buffer.give_up()
            self._close()
        if lost:
            _log.warning(
                "traces lost, because the collector at %s did not accept them before shutdown: %d (%s)",
                self._settings.endpoint,
                lost,
                self._refusal,
            )

    def pause(self, timeout: float) -> float:
        """Close call and connection before a fork, on the forking thread.

        Waits at most ``timeout`` seconds; the request is sent again. Returns the seconds that the fork should still
        wait, because gRPC closes connections under locks.
        """
        if not self._gate.acquire(timeout=timeout):
            return 0.0
        self._paused_by = threading.get_ident()
        self._cancel()
        self.buffer.put_back()
        self._close()
        return max(0.0, self._closed_at + _TEARDOWN_S - time.monotonic())

    def resume(self) -> None:
        """Reopen the gate in the parent, on the same thread."""
        if self._paused_by == threading.get_ident():  # another thread can hold the gate for its own fork
            self._paused_by = 0
            self._gate.release()
            self._wake()

    def abandon(self) -> tuple[object, ...]:
        """Release everything in a forked child. Do not use or destroy the returned connection."""
        kept = (self._channel, self._call)
        self.__dict__.clear()
        return kept

    def _cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            self._closed_at = time.monotonic()

    def _send(self) -> None:
        if self._channel is None:
            try:
                self._channel = self._open_channel(self._settings)
            except OSError as error:  # certificates that were there at the start
                self._again(grpc.StatusCode.UNAVAILABLE, str(error), None)
                return
        method = self._channel.unary_unary(METHOD, None, None)
        self._call = method.future(self.buffer.batch(), timeout=self._settings.timeout, metadata=self._settings.headers)
        self._call.add_done_callback(lambda _: self._wake())

    def _answered(self, call: Any) -> None:
        code = call.code()
        if code is grpc.StatusCode.OK:
            try:
                self.buffer.accepted(
                    {each.trace_id: each.reason for each in SubmitTracesResponse.FromString(call.result()).rejected}
                )
                if self._failures and self._warned_at is not None:
                    _log.info("the collector at %s is back", self._settings.endpoint)
                self._failures = 0
            except DecodeError:
                self._refused("not_a_collector", "the answer is not the answer of a collector")
            return
        delay = retry_after_s(call.trailing_metadata())
        if code in _AGAIN or code in _LOCKED_OUT or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and delay is not None):
            self._again(code, call.details(), delay)
        elif code is not grpc.StatusCode.RESOURCE_EXHAUSTED or not self.buffer.split():
            self._refused(code.name.lower(), call.details() or code.name)

    def _again(self, code: grpc.StatusCode, details: str | None, delay: float | None) -> None:
        self._failures += 1
        self._refusal = f"{code.name}: {details}"
        if delay is None:
            backoff = min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** min(self._failures - 1, 10))
            self._better_at = time.monotonic() + backoff * random.uniform(0.5, 1.0)
        else:
            self._not_before = time.monotonic() + delay
        self.buffer.put_back()
        if self._settings.secure and code is grpc.StatusCode.UNAVAILABLE:
            self._close()  # the next attempt reads the certificates again, because they may be new
        if delay is None:
            self._warn(
                "the collector at %s %s (%s: %s): %s; the processor keeps up to %d MiB of traces, then drops the "
                "oldest; it tries again until the collector accepts them, without further warnings",
                self._settings.endpoint,
                "denies access to this application" if code in _LOCKED_OUT else "cannot be reached",
                code.name,
                details,
                _LET_US_IN if code in _LOCKED_OUT else cure(self._settings, details or ""),
                self._settings.buffer_bytes >> 20,
            )

    def _refused(self, reason: str, details: str) -> None:
        self.buffer.refused(reason)
        what = _NO_COLLECTOR if reason in ("unimplemented", "not_a_collector") else "the collector rejects traces"
        self._warn("%s: %s (%s). The rejected traces are dropped", self._settings.endpoint, what, details)

    def _warn(self, message: str, *values: object) -> None:
        now = time.monotonic()
        if self._warned_at is None or (self._failures <= 1 and now - self._warned_at > _WARN_AGAIN_S):
            self._warned_at = now
            _log.warning(message, *values)
