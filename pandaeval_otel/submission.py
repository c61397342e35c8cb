"""Completed traces on their way to the collector: a bounded buffer, one request at a time, retries with back-off.

The worker thread owns it. Nothing here waits: a call reports to ``wake`` when it is answered.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest, SubmitTracesResponse
from pandaeval_otel.collecting import Part
from pandaeval_otel.connection import channel, cure
from pandaeval_otel.retry import retry_after_s
from pandaeval_otel.settings import Settings
from pandaeval_otel.telemetry import ACKNOWLEDGED, DROPPED, REJECTED

_log = logging.getLogger(__name__)

METHOD = "/pandaeval.v1.TraceService/SubmitTraces"
_BATCH_BYTES, _BATCH_TRACES = 4 << 20, 256
_BACKOFF_S, _MAX_BACKOFF_S, _HURRIED_S = 0.25, 10.0, 0.1
_WARN_AGAIN_S = 600.0
_TEARDOWN_S = 0.05
_LET_US_IN = "set PANDAEVAL_TOKEN to the token that server.token_env of the collector names"
_NO_COLLECTOR = "what listens there is no PandaEval collector: set PANDAEVAL_ENDPOINT to its gRPC port (4327)"
_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
)
_LOCKED_OUT = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
"""Tried again too: the door may open to us, and a token that was wrong for a minute costs nothing."""


@dataclass(slots=True)
class _Waiting:
    """One part, encoded as a request of its own: requests may be joined byte by byte."""

    number: int
    trace_id: bytes
    data: bytes
    spans: int
    logs: int


class Submission:
    """``count`` as in :class:`pandaeval_otel.telemetry.ProcessorTelemetry`. ``open_channel`` is called when there is
    something to send, on the worker thread."""

    def __init__(
        self,
        settings: Settings,
        count: Callable[..., None],
        wake: Callable[[], None],
        open_channel: Callable[[Settings], grpc.Channel] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._count, self._wake, self._clock = settings, count, wake, clock
        self._open_channel = open_channel or channel
        self._channel: grpc.Channel | None = None
        self._gate = threading.Lock()
        self._paused = False
        self._waiting: deque[_Waiting] = deque()
        self._batch: list[_Waiting] = []
        self._call: Any = None
        self._not_before = self._better_at = self._tried_at = 0.0
        self._failures = 0
        self._batch_traces = _BATCH_TRACES
        self._warned_at: float | None = None
        self._number = 0
        self.lost = 0
        """Parts that were given up so far."""
        self.buffered_bytes = 0

    @property
    def newest(self) -> int:
        """The number of the part that was put last."""
        return self._number

    @property
    def settled(self) -> int:
        """All parts up to this number are acknowledged, rejected or given up."""
        oldest = self._batch or self._waiting
        return oldest[0].number - 1 if oldest else self._number

    def put(self, part: Part) -> None:
        """Takes a part; where the buffer is full, the oldest ones go."""
        request = SubmitTracesRequest(traces=[_completed(part)]).SerializeToString()
        self._number += 1
        waiting = _Waiting(self._number, part.trace_id, request, part.span_count, part.log_count)
        self._waiting.append(waiting)
        self.buffered_bytes += len(request)
        while self.buffered_bytes > self._settings.buffer_bytes and self._waiting:
            self._drop(self._waiting.popleft(), "buffer_full")

    def step(self, hurry: bool = False) -> None:
        """Takes the answer to the running call, if there is one, and starts the next. ``hurry``: somebody waits."""
        with self._gate:
            self._step(hurry)

    def _step(self, hurry: bool) -> None:
        if self._call is not None and self._call.done():
            call, self._call = self._call, None
            self._answered(call)
        if self._call is None and (self._batch or self._waiting):
            now = self._clock()
            backoff_over = now >= self._better_at or (hurry and now >= self._tried_at + _HURRIED_S)
            if now >= self._not_before and backoff_over:
                self._tried_at = now
                self._send()

    def wait_s(self) -> float | None:
        """Seconds until :meth:`step` can do something although nothing new came; ``None``: it waits for ``wake``."""
        if self._call is not None or not (self._batch or self._waiting):
            return None
        return max(0.0, max(self._not_before, self._better_at) - self._clock())

    def give_up(self, reason: str) -> None:
        """Counts everything that was not acknowledged as dropped."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        for waiting in (*self._batch, *self._waiting):
            self._drop(waiting, reason)
        self._batch, self._waiting = [], deque()

    def close(self) -> None:
        """Closes the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def pause(self, timeout: float) -> None:
        """Before a fork, on the forking thread: older gRPCs break in parent or child when one happens during a call. So
        there is none, nor a connection; what was on its way is sent again. Waits at most ``timeout`` seconds."""
        self._paused = self._gate.acquire(timeout=timeout)
        if self._paused and self._channel is not None:
            if self._call is not None:
                self._call.cancel()
                self._call = None
                self._put_back()
            self.close()
            # gRPC's own threads take the connection down, under locks that a child would inherit as they are then.
            time.sleep(_TEARDOWN_S)

    def resume(self) -> None:
        """After the fork, in the parent."""
        if self._paused:
            self._paused = False
            self._gate.release()
            self._wake()

    def abandon(self) -> tuple[object, ...]:
        """In a forked child. Returns what it must neither use nor destroy, its parent's connection if that could not be
        closed, and lets go of everything else."""
        kept = (self._channel, self._call)
        self.__dict__.clear()
        return kept

    # -- sending -------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        size = sum(len(waiting.data) for waiting in self._batch)
        while self._waiting and len(self._batch) < self._batch_traces:
            size += len(self._waiting[0].data)
            if size > _BATCH_BYTES and self._batch:
                break
            self._batch.append(self._waiting.popleft())
        if self._channel is None:
            try:
                self._channel = self._open_channel(self._settings)
            except OSError as error:  # certificates that were there at the start
                self._again(grpc.StatusCode.UNAVAILABLE, str(error), None)
                return
        method = self._channel.unary_unary(METHOD, None, None)
        self._call = method.future(
            b"".join(waiting.data for waiting in self._batch),
            timeout=self._settings.timeout,
            metadata=self._settings.metadata,
        )
        self._call.add_done_callback(lambda _: self._wake())

    def _answered(self, call: Any) -> None:
        code = call.code()
        if code is grpc.StatusCode.OK:
            try:
                self._accepted(SubmitTracesResponse.FromString(call.result()))
            except DecodeError:
                self._refused("not_a_collector", "it answered something else than a collector does")
            return
        delay = retry_after_s(call.trailing_metadata())
        if code in _AGAIN or code in _LOCKED_OUT or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and delay is not None):
            self._again(code, call.details(), delay)
        elif code is grpc.StatusCode.RESOURCE_EXHAUSTED and len(self._batch) > 1:
            self._split()
        else:
            self._refused(code.name.lower(), call.details() or code.name)

    def _accepted(self, response: SubmitTracesResponse) -> None:
        rejected = {each.trace_id: each.reason for each in response.rejected}
        for waiting in self._batch:
            self.buffered_bytes -= len(waiting.data)
            reason = rejected.get(waiting.trace_id)
            self._tell(waiting, *((ACKNOWLEDGED,) if reason is None else (REJECTED, reason)))
        if self._failures and self._warned_at is not None:
            _log.info("the collector at %s is back", self._settings.endpoint)
        self._batch, self._failures = [], 0
        self._batch_traces = _BATCH_TRACES

    def _again(self, code: grpc.StatusCode, details: str | None, delay: float | None) -> None:
        self._failures += 1
        if delay is None:
            backoff = min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** min(self._failures - 1, 10))
            self._better_at = self._clock() + backoff * random.uniform(0.5, 1.0)
        else:
            self._not_before = self._clock() + delay
        self._put_back()
        if self._settings.secure and code is grpc.StatusCode.UNAVAILABLE:
            self.close()  # certificates may have been renewed: the next attempt reads them again
        if delay is None:
            self._warn(
                "the collector at %s %s (%s: %s): %s; up to %d MiB of traces are kept for it, and "
                "the oldest are dropped beyond that; it is tried again and again, without another word",
                self._settings.endpoint,
                "does not let this application in" if code in _LOCKED_OUT else "cannot be reached",
                code.name,
                details,
                _LET_US_IN if code in _LOCKED_OUT else cure(self._settings, details or ""),
                self._settings.buffer_bytes >> 20,
            )

    def _split(self) -> None:
        """Together they may be too large; one alone is refused for good."""
        self._batch_traces = max(1, len(self._batch) // 2)
        self._put_back()

    def _put_back(self) -> None:
        self._waiting.extendleft(reversed(self._batch))
        self._batch = []

    def _refused(self, reason: str, details: str) -> None:
        for waiting in self._batch:
            self._drop(waiting, reason)
        self._batch, self._batch_traces = [], _BATCH_TRACES
        what = _NO_COLLECTOR if reason in ("unimplemented", "not_a_collector") else "the collector there refuses traces"
        self._warn("%s: %s (%s)", self._settings.endpoint, what, details)

    def _drop(self, waiting: _Waiting, reason: str) -> None:
        self.buffered_bytes -= len(waiting.data)
        self.lost += 1
        self._tell(waiting, DROPPED, reason)

    def _tell(self, waiting: _Waiting, outcome: str, reason: str = "") -> None:
        if waiting.spans:
            self._count("spans", outcome, waiting.spans, reason)
        if waiting.logs:
            self._count("logs", outcome, waiting.logs, reason)
        if waiting.trace_id:
            self._count("traces", outcome, 1, reason)

    def _warn(self, message: str, *values: object) -> None:
        now = self._clock()
        if self._warned_at is None or (self._failures <= 1 and now - self._warned_at > _WARN_AGAIN_S):
            self._warned_at = now
            _log.warning(message, *values)


def _completed(part: Part) -> CompletedTrace:
    return CompletedTrace(
        trace_id=part.trace_id,
        spans=part.spans,
        logs=part.logs,
        reason=part.reason,
        fragment=part.fragment,
        session_end=part.session_end,
        session_id=part.scope.session,
        case_id=part.scope.case,
        trial=part.scope.trial,
    )
