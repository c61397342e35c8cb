"""The straight line of a running collector: take in, store, acknowledge; decide what is due; commit; hand on.

One event loop owns the assemblers, so they have no locks; scoring runs on one worker thread; SQLite writes on another.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from pandaeval_collector import failpoints
from pandaeval_collector.awaited import Awaited
from pandaeval_collector.line import Decision, Line
from pandaeval_collector.receivers import Accepted, Draining, Malformed, Overloaded, Submitted
from pandaeval_collector.store import Chunk, ResultRow, Store, StoreFullError, TraceRow, WriteSet
from pandaeval_collector.submitted import (
    NO_WORDS,
    SessionEndings,
    TakenApart,
    added_up,
    endings_of,
    take_apart,
    words_of,
)
from pandaeval_collector.telemetry import Telemetry
from pandaeval_otel.assembly import CloseRules, Decided, DueTrace, SessionAssembler, TraceAssembler
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.wire import Fragment, Item, MalformedOtlpError, Split, read_chunk, split_logs, split_traces

_log = logging.getLogger(__name__)

_TICK_S = 0.05
_BATCH = 128
_REMEMBER = 50_000
_FORGET = 2000
_RETRY_S = 1.0
_CROWDED, _FULL = 0.7, 0.9
"""Parts of the disk budget between which the retention goes down to nothing but the late window."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Rules of closing and keeping; seconds and bytes."""

    close: CloseRules = field(default_factory=CloseRules)
    session_idle: float = 900.0
    session_max_age: float = 86_400.0
    late_window: float = 600.0
    retention: float = 604_800.0
    upkeep: float = 30.0
    """Seconds between two rounds of forgetting."""
    judge_wait: float = 0.0
    """How long a session that is over waits for judges, seconds."""


class Pipeline:
    """Implements :class:`pandaeval_collector.receivers.Ingest`. ``on_results`` is called on the event loop with the
    new rows of every commit, in order; ``on_traces`` with the agent traces that were decided."""

    def __init__(
        self,
        store: Store,
        line: Line,
        timing: Timing | None = None,
        telemetry: Telemetry | None = None,
        on_results: Callable[[Sequence[ResultRow]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_traces: Callable[[Sequence[Trace]], None] | None = None,
    ) -> None:
        self.timing = timing or Timing()
        self.telemetry = telemetry or Telemetry()
        self._store, self._line, self._clock = store, line, clock
        self._on_results = on_results or (lambda rows: None)
        self._on_traces = on_traces or (lambda traces: None)
        self._traces = TraceAssembler(self.timing.close)
        self._endings = SessionEndings()
        self._sessions = SessionAssembler(self.timing.session_idle, self.timing.session_max_age)
        self._awaited = Awaited(store.jobs.pending_in, self.timing.judge_wait)
        self._just_decided: OrderedDict[bytes, None] = OrderedDict()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-line")
        self._task: asyncio.Task[None] | None = None
        self._settling = asyncio.Lock()
        self._stopping = False
        self._closing = 0
        self.rounds = 0
        """How often it was looked what is due, and that was dealt with: a sign of life."""

    @property
    def open_traces(self) -> int:
        """Traces that are not decided yet."""
        return len(self._traces) + self._traces.deciding

    @property
    def open_sessions(self) -> int:
        """Sessions that are not scored for good yet."""
        return len(self._sessions) + len(self._awaited) + self._closing

    @property
    def open_items(self) -> int:
        """Spans and log records that no decision covers yet. Takes time for every open trace."""
        return self._traces.items

    @property
    def lag(self) -> float:
        """How long the trace that should be decided next is overdue, seconds."""
        due_at = self._traces.next_deadline()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    # -- in ------------------------------------------------------------------------------------------------------

    async def traces(self, request: bytes) -> Accepted:
        """Stores the spans of an OTLP request; returns after the commit. Raises a ``Refusal``."""
        return await self._take(request, split_traces, "pandaeval.spans")

    async def logs(self, request: bytes) -> Accepted:
        """Stores the log records of an OTLP request that belong to traces; returns after the commit."""
        return await self._take(request, split_logs, "pandaeval.logs")

    async def _take(self, request: bytes, split_request: Callable[[bytes], Split], instrument: str) -> Accepted:
        if self._stopping:
            raise Draining("the collector is shutting down")
        try:
            split = split_request(request)
        except MalformedOtlpError as error:
            raise Malformed(str(error)) from error
        failpoints.reach("after_decode")
        ((stored, known, late),) = await self._keep(split.fragments)
        self._count(instrument, split, stored, known, late)
        failpoints.reach_soon("after_ack")
        return _answer(split, late)

    async def submit(self, traces: Sequence[Submitted]) -> list[str]:
        """Stores completed traces in one commit, and closes those that are no fragments; see
        :class:`pandaeval_collector.receivers.SubmissionIngest`."""
        if self._stopping:
            raise Draining("the collector is shutting down")
        taken = [take_apart(each) for each in traces]
        failpoints.reach("after_decode")
        good = [each for each in taken if not each.problem]
        signals = (("pandaeval.spans", "spans"), ("pandaeval.logs", "logs"))
        splits = [(instrument, [getattr(each, signal) for each in good]) for instrument, signal in signals]
        groups = ([fragment for split in group for fragment in split.fragments] for _, group in splits)
        kept = await self._keep(*groups, words=words_of(good), endings=endings_of(good))
        for (instrument, group), (stored, known, late) in zip(splits, kept, strict=True):
            self._count(instrument, added_up(group), stored, known, late)
        self._count_refused(taken)
        any_late = any(late for _, _, late in kept)
        for each in good:
            self._close_submitted(each.submitted)
        failpoints.reach_soon("after_ack")
        return [each.problem or (self._too_late(each) if any_late else "") for each in taken]

    def _close_submitted(self, trace: Submitted) -> None:
        if self._traces.knows(trace.trace_id):
            self._endings.opened(trace.trace_id, trace.session_id)
            if not trace.fragment:
                self._traces.close(trace.trace_id)
        if trace.session_end and trace.session_id and self._endings.end(trace.session_id):
            self.end_session(trace.session_id)

    def _count_refused(self, taken: Sequence[TakenApart]) -> None:
        for each in taken:
            if each.problem:
                for instrument, split in (("pandaeval.spans", each.spans), ("pandaeval.logs", each.logs)):
                    self.telemetry.add(instrument, "decoded", split.decoded)
                    self.telemetry.add(instrument, "rejected", split.decoded, "invalid")

    def _too_late(self, taken: TakenApart) -> str:
        """Why a trace was not kept although nothing is wrong with it."""
        trace_id = taken.submitted.trace_id
        decided = None if self._traces.knows(trace_id) else self._store.decided([trace_id]).get(trace_id)
        if decided is None or not self._traces.is_final(decided):
            return ""
        items = [item for split in (taken.spans, taken.logs) for fragment in split.fragments for item in fragment.items]
        return "late: the trace was scored for good" if any(item.id not in decided.known for item in items) else ""

    async def _keep(
        self, *groups: Sequence[Fragment], words: Mapping[bytes, Submitted] = NO_WORDS, endings: Sequence[str] = ()
    ) -> list[tuple[int, int, int]]:
        """Stores groups of fragments in one commit, with what applications said of them; for each group, how many items
        are stored, known and too late."""
        try:
            remembered = self._remembered([fragment for group in groups for fragment in group])
            sorted_out = [self._sort_out(group, remembered) for group in groups]
            chunks = [[self._chunk(each, words.get(each.trace_id)) for each in wanted] for wanted, _, _ in sorted_out]
            if any(chunks) or endings:
                await asyncio.wrap_future(self._store.append([chunk for group in chunks for chunk in group], endings))
            kept = []
            for (wanted, known, late), group in zip(sorted_out, chunks, strict=True):
                stored, repeated, too_late = self._assemble(wanted, group, remembered)
                kept.append((stored, known + repeated, late + too_late))
        except StoreFullError as error:
            raise Overloaded(str(error)) from error
        except sqlite3.Error as error:
            _log.error("a request could not be stored (%s); its sender is asked to come back", error)
            self.telemetry.add("pandaeval.store.errors", "refused")
            raise Overloaded("the store cannot be written to just now") from error
        return kept

    def _remembered(self, fragments: Sequence[Fragment]) -> dict[bytes, Decided]:
        unknown = [fragment.trace_id for fragment in fragments if not self._traces.knows(fragment.trace_id)]
        return self._store.decided(unknown) if unknown else {}

    def _sort_out(
        self, fragments: Sequence[Fragment], remembered: dict[bytes, Decided]
    ) -> tuple[list[Fragment], int, int]:
        """Which fragments have to be stored; how many items are known already, and how many come too late."""
        wanted: list[Fragment] = []
        known = late = 0
        for fragment in fragments:
            decided = remembered.get(fragment.trace_id)
            if decided is None:
                wanted.append(fragment)
                continue
            new = sum(1 for item in fragment.items if item.id not in decided.known)
            if new and not self._traces.is_final(decided):
                wanted.append(fragment)
            else:
                known += len(fragment.items) - new
                late += new
        return wanted, known, late

    def _chunk(self, fragment: Fragment, word: Submitted | None) -> Chunk:
        return Chunk(
            id=self._store.next_chunk_id(),
            trace_id=fragment.trace_id,
            logs=fragment.logs,
            items=len(fragment.items),
            start_ns=fragment.start_ns,
            data=fragment.chunk,
            session=word.session_id if word is not None else "",
            closes=word is not None and not word.fragment,
        )

    def _assemble(
        self, fragments: Sequence[Fragment], chunks: Sequence[Chunk], remembered: dict[bytes, Decided]
    ) -> tuple[int, int, int]:
        """Tells the assembler what is committed. A trace may have been decided while we waited for the commit."""
        now = self._clock()
        stored = known = late = 0
        useless: list[int] = []
        for fragment, chunk in zip(fragments, chunks, strict=True):
            decided = remembered.get(fragment.trace_id)
            if fragment.trace_id in self._just_decided and not self._traces.knows(fragment.trace_id):
                decided = self._store.decided([fragment.trace_id]).get(fragment.trace_id)
            added = self._traces.add(fragment.trace_id, fragment.items, chunk.id, len(chunk.data), now, decided)
            stored, known, late = stored + added.stored, known + added.duplicate, late + added.late
            if added.late or (not added.stored and fragment.trace_id not in self._traces):
                useless.append(chunk.id)
        if useless:
            self._store.discard(useless)
        return stored, known, late

    def _count(self, instrument: str, split: Split, stored: int, duplicate: int, late: int) -> None:
        add = self.telemetry.add
        add(instrument, "decoded", split.decoded)
        add(instrument, "stored", stored)
        add(instrument, "duplicate", duplicate)
        add(instrument, "own_output", split.own_output)
        add(instrument, "rejected", split.rejected, "invalid")
        add(instrument, "rejected", late, "late")
        add(instrument, "ignored", split.ignored, "no_trace")

    # -- out -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Resumes what the store holds, then begins to decide."""
        await asyncio.get_running_loop().run_in_executor(self._worker, self._resume)
        self._task = asyncio.create_task(self._run(), name="pandaeval-pipeline")

    async def stop(self, decide: bool = False) -> None:
        """Finishes the decision at hand and stops. Open traces stay in the store, or are decided as they are."""
        self._stopping = True
        if self._task is not None:
            await self._task
        if decide:
            await self.close_all(Trigger.SHUTDOWN)
        self._worker.shutdown()

    async def close_all(self, trigger: Trigger) -> None:
        """Decides every open trace, then every open session."""
        while due := self._traces.take_all(trigger, _BATCH):
            await self._decide(due)
        open_sessions = [*self._sessions.take_all(trigger), *self._awaited.take_all(trigger)]
        await self._close_sessions({session.session_id: trigger for session in open_sessions})

    async def session_now(self, session_id: str) -> list[bytes]:
        """The results that a session would have if it ended now, as JSON objects; none of them is stored."""
        loop = asyncio.get_running_loop()
        results = await loop.run_in_executor(self._worker, self._line.session_now, session_id)
        return [result.to_json() for result in results]

    def end_session(self, session_id: str) -> None:
        """The application says that a session is over."""
        self._sessions.end(session_id, self._clock())

    def close_trace(self, trace_id: bytes) -> None:
        """The application says that a trace is done."""
        self._traces.close(trace_id)

    def _resume(self) -> None:
        now = self._clock()
        closed: list[bytes] = []
        for chunk in self._store.open_chunks():
            failpoints.reach("during_resume")
            decided = None
            if not self._traces.knows(chunk.trace_id):
                decided = self._store.decided([chunk.trace_id]).get(chunk.trace_id)
            added = self._traces.add(chunk.trace_id, _items(chunk), chunk.id, len(chunk.data), now, decided)
            self.telemetry.add("pandaeval.items", "resumed", added.stored)
            if added.late or (not added.stored and chunk.trace_id not in self._traces):
                self._store.discard([chunk.id])
            if self._traces.knows(chunk.trace_id):
                self._endings.opened(chunk.trace_id, chunk.session)
                closed += [chunk.trace_id] if chunk.closes else []
        for trace_id in closed:
            self._traces.close(trace_id)
        for session_id in self._store.open_sessions():
            self._sessions.touch(session_id, now)
        for session_id in self._store.endings():
            if self._endings.end(session_id):
                self.end_session(session_id)
        if len(self._traces):
            _log.info("resumed %d open traces and %d open sessions", len(self._traces), len(self._sessions))

    async def _run(self) -> None:
        upkeep_at = self._clock() + self.timing.upkeep
        while not self._stopping:
            now = self._clock()
            due = self._traces.take_due(now, _BATCH)
            try:
                await self._settle_due(due, now)
                if now >= upkeep_at:
                    upkeep_at = now + self.timing.upkeep
                    await self._upkeep()
            except Exception:
                if self._stopping:
                    raise
                # The last resort: what was taken out just now is in the store, and taken up again at the next start.
                _log.exception("%d traces or a session could not be dealt with before the next start", len(due))
                self.telemetry.add("pandaeval.store.errors", "left")
            self.rounds += 1
            if not due:
                await asyncio.sleep(_TICK_S)

    async def _settle_due(self, due: Sequence[DueTrace], now: float) -> None:
        if due:
            await self._decide(due)
        sessions = self._awaited.ready(self._sessions.take_due(now), now)
        if sessions:
            await self._close_sessions({session.session_id: session.trigger for session in sessions})

    async def _decide(self, due: Sequence[DueTrace]) -> None:
        failpoints.reach("before_decide")
        try:
            await self.settle(lambda: self._line.decide(due))
        except Exception as error:
            if self._stopping:
                raise
            if len(due) > 1:
                for each in due:
                    await self._decide([each])
                return
            _log.exception("trace %s could not be decided", due[0].trace_id.hex())
            await self.settle(lambda: _given_up(due[0]))
            self.telemetry.add("pandaeval.traces", "failed", 1, type(error).__name__)
        for each in due:
            self._traces.decided(each.trace_id)
            self._remember(each.trace_id)
            self.telemetry.add("pandaeval.traces", "decided", 1, each.trigger.value)
            self.telemetry.add("pandaeval.items", "decided", each.new_items)
            ended = self._endings.decided(each.trace_id)
            if ended is not None:
                self.end_session(ended)

    async def _close_sessions(self, sessions: dict[str, Trigger]) -> None:
        self._closing += len(sessions)
        try:
            await self.settle(lambda: self._line.close_sessions(sorted(sessions), sessions.__getitem__))
        except Exception as error:
            if self._stopping:
                raise
            if len(sessions) > 1:
                for session_id, trigger in sessions.items():
                    await self._close_sessions({session_id: trigger})
                return
            _log.exception("a session could not be scored")
            await self.settle(lambda: Decision(WriteSet(closed=set(sessions))))
            self.telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)
        finally:
            self._closing -= len(sessions)
        told = [session_id for session_id, trigger in sessions.items() if trigger is Trigger.EXPLICIT]
        if told:
            # After the commit: where a crash comes in between, the session is closed once more, with the same results.
            await self._patiently(lambda: asyncio.wrap_future(self._store.forget_endings(told)))

    async def settle(self, decide: Callable[[], Decision]) -> None:
        """Decides on the worker and commits, one decision at a time: each reads what the one before it left behind.
        Neither is given up because the disk is full or failing just now."""
        async with self._settling:
            await self._settle(decide)

    async def _settle(self, decide: Callable[[], Decision]) -> None:
        loop = asyncio.get_running_loop()
        decision = await self._patiently(lambda: loop.run_in_executor(self._worker, decide))
        failpoints.reach("after_decide")
        rows = await self._patiently(lambda: asyncio.wrap_future(self._store.commit(decision.changes)))
        failpoints.reach("after_decision_commit")
        now = self._clock()
        for session_id in decision.changes.touched:
            if decision.traces:
                self._awaited.goes_on(session_id)
            if session_id not in self._awaited:
                self._sessions.touch(session_id, now)
        try:
            if rows:
                self._on_results(rows)
            if decision.traces:
                self._on_traces(decision.traces)
        except Exception:  # noqa: BLE001 - the decision itself is committed, whoever watches
            _log.exception("what watches the results failed")

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except sqlite3.OperationalError as error:
                _log.error("the store fails (%s); trying again in %.0f s", error, _RETRY_S)
                self.telemetry.add("pandaeval.store.errors", "retried")
                if self._stopping:
                    raise
                await asyncio.sleep(_RETRY_S)

    def _remember(self, trace_id: bytes) -> None:
        self._just_decided[trace_id] = None
        while len(self._just_decided) > _REMEMBER:
            self._just_decided.popitem(last=False)

    def _retention(self) -> float:
        """What is configured, and less while the disk budget runs out: old results go before new spans are refused."""
        timing = self.timing
        fill = self._store.size_bytes() / self._store.max_bytes
        spare = (_FULL - fill) / (_FULL - _CROWDED)
        return max(timing.late_window, timing.retention * min(1.0, max(0.0, spare)))

    async def _upkeep(self) -> None:
        timing = self.timing
        forgotten = _FORGET
        try:
            while forgotten == _FORGET:
                forgotten = await asyncio.wrap_future(
                    self._store.forget(
                        timing.late_window, self._retention(), time.time(), self._traces.reopened(), limit=_FORGET
                    )
                )
            await asyncio.get_running_loop().run_in_executor(self._worker, self._store.checkpoint)
        except sqlite3.Error as error:
            _log.error("the store could not be tidied up (%s)", error)
            self.telemetry.add("pandaeval.store.errors", "upkeep")


def _items(chunk: Chunk) -> list[Item]:
    """What a stored chunk holds. One that was damaged on disk holds nothing: its trace is given up when it is due."""
    try:
        return list(read_chunk(chunk.data, chunk.logs))
    except MalformedOtlpError as error:
        _log.error("spans of trace %s cannot be read any more (%s)", chunk.trace_id.hex(), error)
        return []


def _given_up(due: DueTrace) -> Decision:
    """A trace that we cannot read must not be tried forever; its spans stay in the store until they expire."""
    row = TraceRow(due.trace_id, due.revision, True, "", due.known, due.chunks, due.size)
    return Decision(WriteSet(traces=[row]))


def _answer(split: Split, late: int) -> Accepted:
    messages = [split.message] if split.rejected else []
    if late:
        messages.append(f"{late} came after their trace was scored for good (late.window, close.max_spans)")
    return Accepted(split.rejected + late, "; ".join(messages))
