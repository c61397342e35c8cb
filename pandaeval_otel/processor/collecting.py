"""Groups this process's spans into traces. Single-threaded.

If the root ended and no span is open, the trace is complete. Other traces are sent as fragments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from pandaeval_otel._proto import trace_service_pb2 as proto
from pandaeval_otel.assembly import CloseRules, DueTrace, TraceAssembler
from pandaeval_otel.model import Trigger
from pandaeval_otel.processor._scope import NOTHING, ContextIds
from pandaeval_otel.processor.encoding import logs_to_bytes, merged, spans_to_bytes
from pandaeval_otel.processor.settings import Settings
from pandaeval_otel.processor.telemetry import DROPPED, ENDED
from pandaeval_otel.wire.fragments import Item

MAX_TRACES = 10_000
_REMEMBERED = 20_000
_PART_BYTES = 8 << 20  # even with a last span above this size, every collector accepts the request
_TRACE_BYTES, _SPAN_BYTES = 1_700, 400
"""Bytes of overhead per trace, and per span or record: ids and table entries."""
_TOGETHER = 64
"""Maximum traces encoded together, to limit memory."""
_BESIDE_BYTES = 300
"""Bytes of overhead per part."""
_CAPPED = (Trigger.SPAN_LIMIT, Trigger.MEMORY)
_Encoded = dict[bytes, list[bytes]]
"""Requests by trace id."""


class SessionEnd(NamedTuple):
    """The end of a session, reported inside the trace with this id, or outside of any (0)."""

    session: str
    trace_id: int


@dataclass(slots=True)
class Part:
    """A trace or part of a trace, encoded as a request. ``number``: order of submission."""

    trace_id: bytes
    data: bytes
    spans: int = 0
    logs: int = 0
    number: int = 0

    @property
    def size(self) -> int:
        return len(self.data) + _BESIDE_BYTES


@dataclass(slots=True)
class _Trace:
    touched_at: float
    open: set[int] = field(default_factory=set)
    spans: list[bytes] = field(default_factory=list)
    logs: list[bytes] = field(default_factory=list)
    span_count: int = 0
    log_count: int = 0
    size: int = 0
    root_ended: bool = False
    session_end: bool = False
    scope: ContextIds = NOTHING


class Collecting:
    """Collects open traces. ``inherited``: traces open at the fork, whose roots belong to the parent."""

    def __init__(self, settings: Settings, count: Callable[..., None], inherited: Iterable[int] = ()) -> None:
        self._redact, self._held_limit, self._count = settings.redact, settings.held_bytes, count
        self._inherited = frozenset(inherited)
        self._rules = CloseRules(max_bytes=min(_PART_BYTES, settings.held_bytes // 2))
        self._assembler = TraceAssembler(self._rules)
        self._traces: OrderedDict[int, _Trace] = OrderedDict()
        self._gone: OrderedDict[int, str] = OrderedDict()
        self._ends: list[Part] = []
        self._records = 0
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._traces)

    def trace_ids(self) -> list[int]:
        return list(self._traces)

    def take(self, items: Iterable[Any], now: float) -> None:
        """Process in order started spans (``SpanContext``), ended spans (``ReadableSpan``), log records and
        :class:`SessionEnd`.
        """
        ended: dict[int, list[ReadableSpan]] = {}
        records: dict[int, list[Any]] = {}
        for item in items:
            if isinstance(item, SpanContext):
                self._start(item, None, now)
            elif type(item) is tuple:
                self._start(item[0], item[1], now)
            elif isinstance(item, ReadableSpan):
                ended.setdefault(item.context.trace_id, []).append(item)
            elif isinstance(item, SessionEnd):
                self._end_session(item)
            else:
                records.setdefault(item.log_record.trace_id, []).append(item)
        for signal, taken in (("spans", ended), ("logs", records)):
            if taken:
                self._count(signal, ENDED, sum(map(len, taken.values())))
        encoded = self._encoded([*ended.values()])
        for trace_id in {**ended, **records}:
            self._add(trace_id, ended.get(trace_id, []), records.get(trace_id, []), encoded, now)
        self._shrink(now - self._rules.max_age)

    def _end_session(self, end: SessionEnd) -> None:
        trace = self._traces.get(end.trace_id)
        if trace is not None and trace.scope.session in ("", end.session):
            trace.session_end = True
            trace.scope = replace(trace.scope, session=end.session)
        else:
            self._ends.append(_part(proto.CompletedTrace(session_end=True, session_id=end.session)))

    def _shrink(self, since: float) -> None:
        while self._traces and (self.held_bytes > self._held_limit or len(self._traces) > MAX_TRACES):
            self.drop(next(iter(self._traces)), "held_full")
        while self._traces:
            trace_id, trace = next(iter(self._traces.items()))
            if trace.touched_at > since or trace.span_count or trace.log_count:
                return
            del self._traces[trace_id]

    def drop(self, trace_id: int, reason: str) -> None:
        if trace_id in self._gone:
            return
        self._gone[trace_id] = reason
        while len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
        trace = self._traces.pop(trace_id, None)
        if trace is not None:
            self.held_bytes -= trace.size
            self._lose(trace.span_count, trace.log_count, reason)
            self._assembler.close(_bytes(trace_id))  # the next call hands it out, and it is ignored
        self._count("traces", DROPPED, 1, reason)

    def drop_all(self, reason: str) -> None:
        for trace_id in self.trace_ids():
            self.drop(trace_id, reason)

    def complete(self, now: float) -> list[Part]:
        return self._parts(self._assembler.take_due(now, MAX_TRACES))

    def flush(self, shutting: bool = False) -> list[Part]:
        """Return everything held. ``shutting``: no spans follow."""
        return self._parts(self._assembler.take_all(Trigger.SHUTDOWN, 2 * MAX_TRACES), shutting)

    def _start(self, context: SpanContext, scope: ContextIds | None, now: float) -> None:
        trace = self._touch(context.trace_id, now)
        if trace is not None:
            trace.open.add(context.span_id)
            trace.scope = scope or trace.scope

    def _touch(self, trace_id: int, now: float) -> _Trace | None:
        trace = self._traces.get(trace_id)
        if trace is not None:
            trace.touched_at = now
            self._traces.move_to_end(trace_id)
        elif trace_id not in self._gone:
            trace = self._traces[trace_id] = _Trace(now)
        return trace

    def _add(
        self,
        trace_id: int,
        spans: list[ReadableSpan],
        records: list[Any],
        encoded: _Encoded,
        now: float,
    ) -> None:
        trace = self._touch(trace_id, now)
        if trace is None:
            self._lose(len(spans), len(records), self._gone[trace_id])
            return
        trace.span_count += len(spans)
        trace.log_count += len(records)
        try:
            size = self._hold(trace, encoded[_bytes(trace_id)] if spans else [], records)
        except Exception:  # noqa: BLE001 - spans or records that cannot be encoded are not sent
            self.drop(trace_id, "encode_failed" if self._redact is None else "redact_failed")
            return
        size += (0 if trace.size else _TRACE_BYTES) + _SPAN_BYTES * (len(spans) + len(records))
        trace.size += size
        self.held_bytes += size
        items = []
        for span in spans:
            span_id, parent = span.context.span_id, span.parent
            trace.open.discard(span_id)
            above, is_remote = b"", False
            if parent is None:
                trace.root_ended = True
            else:
                above, is_remote = parent.span_id.to_bytes(8, "big"), parent.is_remote
            items.append(Item(span_id.to_bytes(8, "big"), above, is_remote))
        items += [Item(b"L" + (self._records + at).to_bytes(8, "big")) for at in range(len(records))]
        self._records += len(records)
        self._assembler.add(_bytes(trace_id), items, 0, size, now)
        if not trace.open:
            self._assembler.close(_bytes(trace_id))

    def _encoded(self, traces: list[list[ReadableSpan]]) -> _Encoded:
        """Return the requests of traces. Traces that cannot be encoded are missing."""
        if len(traces) <= _TOGETHER:
            try:
                return spans_to_bytes([span for spans in traces for span in spans], self._redact)
            except Exception:  # noqa: BLE001 - the user's redactor, or values that cannot be encoded
                if len(traces) == 1:
                    return {}
        half = len(traces) // 2
        return self._encoded(traces[:half]) | self._encoded(traces[half:])

    def _hold(self, trace: _Trace, spans: list[bytes], records: list[Any]) -> int:
        trace.spans += spans
        size = sum(map(len, spans))
        if records:
            trace.logs.append(logs_to_bytes(records, self._redact))
            size += len(trace.logs[-1])
        return size

    def _parts(self, due: Iterable[DueTrace], shutting: bool = False) -> list[Part]:
        parts: list[Part] = []
        for done in due:
            self._assembler.decided(done.trace_id)
            trace_id = int.from_bytes(done.trace_id, "big")
            trace = self._traces.get(trace_id)
            if trace is not None:
                self.held_bytes -= trace.size
                parts += self._part(trace_id, trace, done.trigger in _CAPPED, shutting)
        parts += self._ends
        self._ends = []
        return parts

    def _part(self, trace_id: int, trace: _Trace, capped: bool, shutting: bool) -> list[Part]:
        finished = shutting or not trace.open
        whole = finished and trace.root_ended and trace_id not in self._inherited
        reason = proto.CLOSE_REASON_SHUTDOWN if shutting else proto.CLOSE_REASON_IDLE
        if whole or capped:
            reason = proto.CLOSE_REASON_LIMIT if capped else proto.CLOSE_REASON_ROOT_ENDED
        completed = proto.CompletedTrace(
            trace_id=_bytes(trace_id),
            spans=merged(trace.spans) if trace.spans else b"",
            logs=merged(trace.logs) if trace.logs else b"",
            reason=reason,
            fragment=not whole,
            session_end=finished and trace.session_end,
            session_id=trace.scope.session,
            case_id=trace.scope.case,
            trial=trace.scope.trial,
        )
        spans, logs = trace.span_count, trace.log_count
        if finished:
            del self._traces[trace_id]
        else:
            trace.spans, trace.logs = [], []
            trace.span_count = trace.log_count = trace.size = 0
        if spans or logs or completed.session_end:
            return [_part(completed, spans, logs)]
        return []

    def _lose(self, spans: int, records: int, reason: str) -> None:
        if spans:
            self._count("spans", DROPPED, spans, reason)
        if records:
            self._count("logs", DROPPED, records, reason)


def _part(completed: proto.CompletedTrace, spans: int = 0, logs: int = 0) -> Part:
    return Part(completed.trace_id, proto.SubmitTracesRequest(traces=[completed]).SerializeToString(), spans, logs)


def _bytes(trace_id: int) -> bytes:
    return trace_id.to_bytes(16, "big")
