"""The traces of files, in normal form or to be scored, by start. Spans wait on disk."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pandaeval_collector.base.time_limit import LIMIT, SECONDS_PER_BYTE, TRACE_SECONDS, OverTimeError
from pandaeval_collector.pipeline.line.implied_sessions import Forward
from pandaeval_collector.pipeline.line.linked_traces import LinkedTrace
from pandaeval_collector.pipeline.line.stored_traces import Part, closing_of, rebuilt, stored
from pandaeval_collector.pipeline.line.understanding import with_session
from pandaeval_collector.store import Chunk, Store, StoreReader
from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.replay import BATCH, batches
from pandaeval_otel.assembly import CloseRules, DueTrace
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.session import may_be_linked
from pandaeval_otel.normal.trace import Closing, is_genai
from pandaeval_otel.wire.fragments import MalformedOtlpError
from pandaeval_otel.wire.splitting import read_chunk, split_logs, split_traces


@dataclass(slots=True)
class Read:
    requests: int = 0
    items: int = 0
    stored_bytes: int = 0
    bad: int = 0
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        self.bad += 1
        if len(self.problems) < 10:
            self.problems.append(text)


class TraceFiles:
    """Reads inputs: :meth:`add` requests, then read :meth:`traces` or score them by
    :func:`pandaeval_lab.replay.replay.replay`.

    A context manager.
    """

    def __init__(self, rules: CloseRules | None = None) -> None:
        """``rules``: size limits."""
        self.read = Read()
        self._folder = tempfile.TemporaryDirectory(prefix="pandaeval-")
        self.store = Store(Path(self._folder.name), durability="off", max_bytes=1 << 40)
        self.rules = rules or CloseRules()
        self._waiting: list[Chunk] = []
        self._linked: set[bytes] = set()
        """Ids of traces that may continue others."""

    def __enter__(self) -> TraceFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self._folder.cleanup()

    def add(self, request: Request | BadLine) -> None:
        if isinstance(request, BadLine):
            self.read.problem(f"{request.place}: {request.reason}")
            return
        try:
            split = split_logs(request.data) if request.logs else split_traces(request.data)
        except MalformedOtlpError as error:
            self.read.problem(str(error))
            return
        if split.rejected:
            self.read.problem(split.message)
        self.read.requests += 1
        self.read.items += split.decoded
        for fragment in split.fragments:
            chunk = Chunk(
                self.store.next_chunk_id(),
                fragment.trace_id,
                fragment.logs,
                len(fragment.items),
                fragment.start_ns,
                fragment.chunk,
            )
            self._waiting.append(chunk)
            self.read.stored_bytes += len(fragment.chunk)
            if may_be_linked(fragment.chunk):
                self._linked.add(fragment.trace_id)
        if len(self._waiting) >= BATCH:
            self._flush()

    def add_all(self, requests: Iterable[Request | BadLine]) -> None:
        for request in requests:
            self.add(request)

    def contents(self, trace_id: str) -> Sequence[Part]:
        """Return a trace's stored spans and logs. Raises ``ValueError`` for a bad id."""
        return self.store.reads.contents(bytes.fromhex(trace_id))

    def trace(self, trace_id: str, session_id: str | None, closing: Closing | None = None) -> Trace:
        """Return a trace that was read, as a member of a session. Raises ``ValueError`` for a bad id."""
        trace = rebuilt(self.contents(trace_id), closing).trace
        assert trace is not None, "it was read before"
        return trace if session_id in (None, trace.session_id) else with_session(trace, session_id)

    def traces(self) -> Iterator[Trace]:
        """Yield every trace in normal form by start, also without agents."""
        chains = self.chains()
        for trace in self._built(self._due(), self.read.problem):
            session = chains.session(LinkedTrace.of(trace))
            yield trace if session in (None, trace.session_id) else with_session(trace, session)

    def chains(self) -> Forward:
        self._flush()
        linked = (each for each in self._due() if each.trace_id in self._linked)
        return Forward(self._links(linked), lambda: self._links(self._due()))

    def due(self) -> Iterator[Sequence[DueTrace]]:
        self._flush()
        return batches(self._due())

    def closing(self, touched: Collection[str]) -> Collection[str]:
        return touched

    def _links(self, due: Iterable[DueTrace]) -> Iterator[LinkedTrace]:
        return map(LinkedTrace.of, filter(is_genai, self._built(due, lambda _: None)))

    def _built(self, due: Iterable[DueTrace], on_problem: Callable[[str], None]) -> Iterator[Trace]:
        for each in due:
            seconds = TRACE_SECONDS + each.size * SECONDS_PER_BYTE
            try:
                trace = LIMIT.run(seconds, stored, self.store.reads, each.chunks, closing_of(each)).trace
            except sqlite3.Error:
                raise
            except (Exception, OverTimeError) as error:  # noqa: BLE001 - an error affects only this trace
                on_problem(f"trace {each.trace_id.hex()}: {error}")
                continue
            if trace is not None:
                yield trace

    def _flush(self) -> None:
        if self._waiting:
            self.store.append(self._waiting).result()
            self._waiting = []

    def _due(self) -> Iterator[DueTrace]:
        for trace_id, chunks, size, items in traces_by_start(self.store.reads):
            kept, trigger = self._capped(chunks, size, items)
            yield DueTrace(trace_id, trigger, True, False, tuple(kept), frozenset(), 0, 0, size, 1)

    def _capped(self, chunks: list[int], size: int, items: int) -> tuple[list[int], Trigger]:
        if size < self.rules.max_bytes and items < self.rules.max_spans:
            return chunks, Trigger.FILE
        known: set[bytes] = set()
        total = 0
        for index, chunk in enumerate(chunks):
            logs, data = self.store.reads.chunks([chunk])[chunk]
            total += len(data)
            try:
                known.update(item.id for item in read_chunk(data, logs) if not item.is_log)
            except MalformedOtlpError:  # malformed; the decoder reports it
                return chunks[: index + 1], Trigger.MEMORY
            if len(known) >= self.rules.max_spans:
                return chunks[: index + 1], Trigger.SPAN_LIMIT
            if total >= self.rules.max_bytes:
                return chunks[: index + 1], Trigger.MEMORY
        return chunks, Trigger.FILE


def traces_by_start(reads: StoreReader) -> Iterator[tuple[bytes, list[int], int, int]]:
    """Yield each trace with chunks, by start: id, chunk ids, number of bytes and of items (copies counted)."""
    with reads.scan() as reader:
        rows = reader.execute(
            """SELECT trace_id, group_concat(id), sum(size), sum(items),
                      min(CASE logs WHEN 0 THEN start_ns END) AS start
               FROM chunks GROUP BY trace_id ORDER BY start, trace_id"""
        )
        for trace_id, ids, size, items, _ in rows:
            yield trace_id, sorted(int(part) for part in ids.split(",")), size, items
