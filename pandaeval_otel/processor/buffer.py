"""Holds encoded trace parts until the collector acknowledges them. Owned by the worker thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from pandaeval_otel.processor.collecting import Part
from pandaeval_otel.processor.telemetry import ACKNOWLEDGED, DROPPED, REJECTED

_BATCH_BYTES, _BATCH_TRACES = 4 << 20, 256


class Buffer:
    """Encoded parts until the collector accepts or rejects them. Beyond ``limit`` bytes the oldest are dropped."""

    def __init__(self, limit: int, count: Callable[..., None]) -> None:
        self._limit, self._count = limit, count
        self._waiting: deque[Part] = deque()
        self._batch: list[Part] = []
        self._batch_traces = _BATCH_TRACES
        self.size = 0
        """Bytes held, including those being sent."""
        self.newest = 0
        """The number of the newest part in the buffer, also after it was sent."""
        self.lost = 0
        """Parts dropped so far."""

    def __bool__(self) -> bool:
        return bool(self._batch or self._waiting)

    @property
    def settled(self) -> int:
        """The number up to which all parts are settled."""
        oldest = self._batch or self._waiting
        if oldest:
            return oldest[0].number - 1
        return self.newest

    def put(self, part: Part) -> None:
        self.newest += 1
        part.number = self.newest
        self._waiting.append(part)
        self.size += part.size
        while self.size > self._limit and self._waiting:
            self._drop(self._waiting.popleft(), "buffer_full")

    def batch(self) -> bytes:
        """Return the oldest parts as a request. Report its outcome afterwards."""
        size = sum(len(waiting.data) for waiting in self._batch)
        while self._waiting and len(self._batch) < self._batch_traces:
            size += len(self._waiting[0].data)
            if size > _BATCH_BYTES and self._batch:
                break
            self._batch.append(self._waiting.popleft())
        return b"".join(waiting.data for waiting in self._batch)

    def accepted(self, rejected: Mapping[bytes, str]) -> None:
        """Settle the batch as accepted, except for ``rejected`` (reasons by trace id)."""
        for waiting in self._batch:
            self.size -= waiting.size
            reason = rejected.get(waiting.trace_id)
            self._tell(waiting, *((ACKNOWLEDGED,) if reason is None else (REJECTED, reason)))
        self._batch, self._batch_traces = [], _BATCH_TRACES

    def refused(self, reason: str) -> None:
        for waiting in self._batch:
            self._drop(waiting, reason)
        self._batch, self._batch_traces = [], _BATCH_TRACES

    def put_back(self) -> None:
        self._waiting.extendleft(reversed(self._batch))
        self._batch = []

    def split(self) -> bool:
        """Halve the next batches. Returns ``False`` for a single part."""
        if len(self._batch) < 2:
            return False
        self._batch_traces = len(self._batch) // 2
        self.put_back()
        return True

    def give_up(self) -> int:
        """Drop everything. Returns the number of dropped parts."""
        self.put_back()
        lost = len(self._waiting)
        while self._waiting:
            self._drop(self._waiting.popleft(), "shutdown")
        return lost

    def _drop(self, waiting: Part, reason: str) -> None:
        self.size -= waiting.size
        self.lost += 1
        self._tell(waiting, DROPPED, reason)

    def _tell(self, waiting: Part, outcome: str, reason: str = "") -> None:
        if waiting.spans:
            self._count("spans", outcome, waiting.spans, reason)
        if waiting.logs:
            self._count("logs", outcome, waiting.logs, reason)
        if waiting.trace_id:
            self._count("traces", outcome, 1, reason)
