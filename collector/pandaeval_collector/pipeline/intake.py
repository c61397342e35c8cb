"""Splits requests by trace, stores new items (:mod:`.keeping`), then acknowledges.

It shares the trace assembler's event loop, so it needs no locks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.cores import aside
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.accounting import LOGS, SPANS, count_in_no_fragment
from pandaeval_collector.pipeline.keeping import FragmentGroup, Keeper
from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.receivers import Accepted, Dense, Draining, Malformed
from pandaeval_collector.store import Chunk, Consumed, Store
from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace
from pandaeval_otel.assembly import DueTrace, TraceAssembler
from pandaeval_otel.wire.fragments import DenseError, Item, MalformedOtlpError, Split
from pandaeval_otel.wire.splitting import read_chunk, split_logs, split_traces

_log = logging.getLogger(__name__)

_ON_LOOP = 5_000
"""Items split on the event loop: about 50 ms at worst."""

_LATE = "late: the trace was scored for good (late.window), or is full (close.max_spans, close.max_bytes)"


class Intake:
    """Takes in spans and log records. Calls ``end_session`` for each ended session without undecided traces."""

    def __init__(
        self,
        store: Store,
        traces: TraceAssembler,
        telemetry: Telemetry,
        clock: Callable[[], float],
        sessions: OpenSessions,
        end_session: Callable[[str], None],
        is_draining: Callable[[], bool],
        open_bytes: int,
    ) -> None:
        self._store, self._traces, self._telemetry, self._clock = store, traces, telemetry, clock
        self._end_session, self._is_draining = end_session, is_draining
        self._sessions = sessions
        self._keeper = Keeper(store, traces, telemetry, clock, open_bytes)

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        """Store an OTLP request's spans; return after the commit. Raises a ``Refusal``."""
        return await self._take(request, split_traces, SPANS, large)

    async def logs(self, request: bytes, large: bool = False) -> Accepted:
        """Store an OTLP request's log records with a trace; return after the commit."""
        return await self._take(request, split_logs, LOGS, large)

    async def submit(self, traces: Sequence[CompletedTrace], large: bool = False) -> list[str]:
        """Store completed traces in one commit, and close those that are no fragments; see
        :class:`pandaeval_collector.receivers.Ingest`.
        """
        self._require_open()
        taken = await aside(lambda: [*map(_take_apart, traces)]) if large else [*map(_take_apart, traces)]
        good = [submission for submission in taken if not submission.problem]
        submitted = [submission.submitted for submission in good]
        endings = [trace.session_id for trace in submitted if trace.session_end and trace.session_id]
        splits = {SPANS: [submission.spans for submission in good], LOGS: [submission.logs for submission in good]}
        late = await self._keep(splits, _last_words(submitted), endings)
        for submission in taken:
            if submission.problem:
                self._count_rejected(SPANS, submission.spans)
                self._count_rejected(LOGS, submission.logs)
        for trace in submitted:
            self._end(trace)
        return [each.problem or (_LATE if late[each.submitted.trace_id] else "") for each in taken]

    def _count_rejected(self, instrument: str, split: Split) -> None:
        self._telemetry.add(instrument, "decoded", split.decoded)
        self._telemetry.add(instrument, "rejected", split.decoded, "invalid")

    def _end(self, trace: CompletedTrace) -> None:
        if self._traces.knows(trace.trace_id):
            self._sessions.expect(trace.trace_id, trace.session_id)
            if not trace.fragment:
                self._traces.close(trace.trace_id)
        if trace.session_end and trace.session_id and self._sessions.may_end(trace.session_id):
            self._end_session(trace.session_id)

    async def consume(self, spans: Sequence[Split], read: Sequence[Consumed], logs: Sequence[Split] = ()) -> None:
        """Store Kafka messages with their offsets; return after the commit.

        After a ``Refusal``, repeat the messages.
        """
        self._require_open()
        await self._keep({SPANS: spans, LOGS: logs}, read=read)

    def _require_open(self) -> None:
        if self._is_draining():
            raise Draining("the collector is shutting down")
        self._keeper.require_memory()

    async def let_go(self, trace_ids: Iterable[bytes]) -> None:
        """Forget open traces and their spans, because another collector continues them."""
        ids = [trace_id for trace_id in trace_ids if trace_id in self._traces]
        decided = self._store.decided(ids)
        useless: set[int] = set()
        for trace_id in ids:
            items, chunks = self._traces.forget(trace_id)
            useless |= set(chunks) - set(decided[trace_id].chunks if trace_id in decided else ())
            self._telemetry.add("pandaeval.items", "moved", items)
        if useless:
            await asyncio.wrap_future(self._store.discard(sorted(useless)))

    def resume(self) -> None:
        """Restore open traces and pending session ends from the store."""
        now = self._clock()
        closed: list[bytes] = []
        for chunk in self._store.reads.open_chunks():
            failpoints.reach("during_resume")
            decided = None
            if not self._traces.knows(chunk.trace_id):
                decided = self._store.decided([chunk.trace_id]).get(chunk.trace_id)
            added = self._traces.add(chunk.trace_id, _items(chunk), chunk.id, len(chunk.data), now, decided)
            self._telemetry.add("pandaeval.items", "resumed", added.stored)
            self._telemetry.add("pandaeval.store.errors", "damaged", int(not chunk.data))
            if added.late or (not added.stored and chunk.trace_id not in self._traces):
                self._store.discard([chunk.id])
            if self._traces.knows(chunk.trace_id):
                self._sessions.expect(chunk.trace_id, chunk.session)
                closed += [chunk.trace_id] if chunk.closes else []
        for trace_id in closed:
            self._traces.close(trace_id)
        for session_id in self._store.reads.endings():
            if self._sessions.may_end(session_id):
                self._end_session(session_id)

    def decided(self, due: DueTrace) -> None:
        self._traces.decided(due.trace_id)
        self._keeper.decided(due.trace_id)
        ended = self._sessions.decided(due.trace_id)
        if ended is not None:
            self._end_session(ended)

    async def _take(
        self, request: bytes, split_request: Callable[..., Split], instrument: str, large: bool
    ) -> Accepted:
        self._require_open()
        try:
            if large:
                split = await aside(split_request, request)
            else:
                split = split_request(request, at_most=_ON_LOOP)
        except DenseError as error:
            raise Dense("it would hold up the event loop") from error
        except MalformedOtlpError as error:
            raise Malformed(str(error)) from error
        late = (await self._keep({instrument: [split]})).total()
        messages = [split.message] if split.rejected else []
        if late:
            messages.append(f"{late} came after their trace was scored for good (late.window, close.max_spans)")
        return Accepted(split.rejected + late, "; ".join(messages))

    async def _keep(
        self,
        splits: Mapping[str, Sequence[Split]],
        words: Mapping[bytes, CompletedTrace] = MappingProxyType({}),
        endings: Sequence[str] = (),
        read: Sequence[Consumed] = (),
    ) -> Counter[bytes]:
        """Return the number of late items, by trace."""
        failpoints.reach("after_decode")
        groups = [
            FragmentGroup(name, [part for each in some for part in each.fragments]) for name, some in splits.items()
        ]
        await self._keeper.keep(groups, words, endings, read)
        for instrument, some in splits.items():
            for split in some:
                count_in_no_fragment(self._telemetry, instrument, split)
        failpoints.reach_soon("after_ack")
        return sum((group.late for group in groups), Counter())


def _last_words(submitted: Sequence[CompletedTrace]) -> dict[bytes, CompletedTrace]:
    words: dict[bytes, CompletedTrace] = {}
    for trace in submitted:
        if trace.trace_id not in words or words[trace.trace_id].fragment:
            words[trace.trace_id] = trace
    return words


def _items(chunk: Chunk) -> list[Item]:
    try:
        return list(read_chunk(chunk.data, chunk.logs))
    except MalformedOtlpError as error:
        _log.error("spans of trace %s cannot be read any more (%s)", chunk.trace_id.hex(), error)
        return []


@dataclass(frozen=True, slots=True)
class _TakenApart:
    submitted: CompletedTrace
    spans: Split
    logs: Split
    problem: str


def _take_apart(submitted: CompletedTrace) -> _TakenApart:
    """Split a submission by trace. Accepts each trace completely or not at all. Thread-safe; never raises."""
    try:
        spans = split_traces(submitted.spans) if submitted.spans else Split([])
        logs = split_logs(submitted.logs) if submitted.logs else Split([])
    except MalformedOtlpError as error:
        return _TakenApart(submitted, Split([]), Split([]), f"malformed: {error}")
    problem, fragments = "", (*spans.fragments, *logs.fragments)
    if spans.rejected or logs.rejected:
        problem = f"invalid: {spans.message if spans.rejected else logs.message}"
    elif any(fragment.trace_id != submitted.trace_id for fragment in fragments):
        problem = "invalid: it holds items of another trace"
    elif not (fragments or submitted.session_end or spans.own_output or logs.own_output or logs.ignored):
        problem = "invalid: it holds nothing"
    return _TakenApart(submitted, spans, logs, problem)
