"""Holds parts of traces until the collector takes them, bounded in bytes, and counts what became of each. The worker
thread owns it; it uses no clock and no network.

The worker thread owns it; no clock and no network in here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest
from pandaeval_otel.processor.collecting import Part
from pandaeval_otel.processor.telemetry import ACKNOWLEDGED, DROPPED, REJECTED

_BATCH_BYTES, _BATCH_TRACES = 4 << 20, 256


@dataclass(slots=True)
class EncodedPart:
    """One part, encoded as a request of its own: requests may be joined byte by byte."""

    number: int
    trace_id: bytes
    data: bytes
    spans: int
    logs: int


class Buffer:
    """``limit``: bytes; where they do not suffice the oldest parts go. ``count`` as in
    :class:`pandaeval_otel.processor.telemetry.ProcessorTelemetry`."""

    def __init__(self, limit: int, count: Callable[..., None]) -> None:
        self._limit, self._count = limit, count
        self._waiting: deque[EncodedPart] = deque()
        self._batch: list[EncodedPart] = []
        self._batch_traces = _BATCH_TRACES
        self.size = 0
        """Bytes that are held, those on their way too."""
        self.newest = 0
        """The number of the part that was put last."""
        self.lost = 0
        """Parts that were given up so far."""

    def __bool__(self) -> bool:
        """Whether anything is not settled yet."""
        return bool(self._batch or self._waiting)

    @property
    def settled(self) -> int:
        """All parts up to this number are acknowledged, rejected or given up."""
        oldest = self._batch or self._waiting
        return oldest[0].number - 1 if oldest else self.newest

    def put(self, part: Part) -> None:
        """Takes a part."""
        request = SubmitTracesRequest(traces=[_completed(part)]).SerializeToString()
        self.newest += 1
        self._waiting.append(EncodedPart(self.newest, part.trace_id, request, part.span_count, part.log_count))
        self.size += len(request)
        while self.size > self._limit and self._waiting:
            self._drop(self._waiting.popleft(), "buffer_full")

    def batch(self) -> bytes:
        """The oldest parts, as one request. They are on their way until one of the following says what became of
        them."""
        size = sum(len(waiting.data) for waiting in self._batch)
        while self._waiting and len(self._batch) < self._batch_traces:
            size += len(self._waiting[0].data)
            if size > _BATCH_BYTES and self._batch:
                break
            self._batch.append(self._waiting.popleft())
        return b"".join(waiting.data for waiting in self._batch)

    def accepted(self, rejected: Mapping[bytes, str]) -> None:
        """The batch was taken, but for what is ``rejected``: reasons by trace id."""
        for waiting in self._batch:
            self.size -= len(waiting.data)
            reason = rejected.get(waiting.trace_id)
            self._tell(waiting, *((ACKNOWLEDGED,) if reason is None else (REJECTED, reason)))
        self._batch, self._batch_traces = [], _BATCH_TRACES

    def refused(self, reason: str) -> None:
        """The batch will never be taken."""
        for waiting in self._batch:
            self._drop(waiting, reason)
        self._batch, self._batch_traces = [], _BATCH_TRACES

    def put_back(self) -> None:
        """The batch was not taken, and is the first to go again."""
        self._waiting.extendleft(reversed(self._batch))
        self._batch = []

    def split(self) -> bool:
        """The batch was too large: half as many at a time from now on. False if it was one part alone."""
        if len(self._batch) < 2:
            return False
        self._batch_traces = len(self._batch) // 2
        self.put_back()
        return True

    def give_up(self, reason: str) -> None:
        """Everything is lost."""
        for waiting in (*self._batch, *self._waiting):
            self._drop(waiting, reason)
        self._batch, self._waiting = [], deque()

    def _drop(self, waiting: EncodedPart, reason: str) -> None:
        self.size -= len(waiting.data)
        self.lost += 1
        self._tell(waiting, DROPPED, reason)

    def _tell(self, waiting: EncodedPart, outcome: str, reason: str = "") -> None:
        if waiting.spans:
            self._count("spans", outcome, waiting.spans, reason)
        if waiting.logs:
            self._count("logs", outcome, waiting.logs, reason)
        if waiting.trace_id:
            self._count("traces", outcome, 1, reason)


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
