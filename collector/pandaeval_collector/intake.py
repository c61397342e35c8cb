"""What comes in: split by trace, stored, and only then acknowledged; copies and what comes too late are told apart.

On one event loop, with the assembler of open traces, so there are no locks.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from pandaeval_collector import failpoints
from pandaeval_collector.receivers import Accepted, Draining, Malformed, Overloaded, Submitted
from pandaeval_collector.store import Chunk, Store, StoreFullError
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
from pandaeval_otel.assembly import Decided, DueTrace, TraceAssembler
from pandaeval_otel.wire import Fragment, Item, MalformedOtlpError, Split, read_chunk, split_logs, split_traces

_log = logging.getLogger(__name__)

_REMEMBER = 50_000


class Intake:
    """Takes spans and log records in. ``end_session`` is called with each session that an application ended, once none
    of its traces waits for its decision. ``is_draining``: whether nothing is taken any more."""

    def __init__(
        self,
        store: Store,
        traces: TraceAssembler,
        telemetry: Telemetry,
        clock: Callable[[], float],
        end_session: Callable[[str], None],
        is_draining: Callable[[], bool],
    ) -> None:
        self._store, self._traces, self._telemetry, self._clock = store, traces, telemetry, clock
        self._end_session, self._is_draining = end_session, is_draining
        self._endings = SessionEndings()
        self._just_decided: OrderedDict[bytes, None] = OrderedDict()

    async def traces(self, request: bytes) -> Accepted:
        """Stores the spans of an OTLP request; returns after the commit. Raises a ``Refusal``."""
        return await self._take(request, split_traces, "pandaeval.spans")

    async def logs(self, request: bytes) -> Accepted:
        """Stores the log records of an OTLP request that belong to traces; returns after the commit."""
        return await self._take(request, split_logs, "pandaeval.logs")

    async def submit(self, traces: Sequence[Submitted]) -> list[str]:
        """Stores completed traces in one commit, and closes those that are no fragments; see
        :class:`pandaeval_collector.receivers.SubmissionIngest`."""
        if self._is_draining():
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

    def resume(self) -> None:
        """Takes up the open traces that the store holds."""
        now = self._clock()
        closed: list[bytes] = []
        for chunk in self._store.open_chunks():
            failpoints.reach("during_resume")
            decided = None
            if not self._traces.knows(chunk.trace_id):
                decided = self._store.decided([chunk.trace_id]).get(chunk.trace_id)
            added = self._traces.add(chunk.trace_id, _items(chunk), chunk.id, len(chunk.data), now, decided)
            self._telemetry.add("pandaeval.items", "resumed", added.stored)
            if added.late or (not added.stored and chunk.trace_id not in self._traces):
                self._store.discard([chunk.id])
            if self._traces.knows(chunk.trace_id):
                self._endings.opened(chunk.trace_id, chunk.session)
                closed += [chunk.trace_id] if chunk.closes else []
        for trace_id in closed:
            self._traces.close(trace_id)
        for session_id in self._store.endings():
            if self._endings.end(session_id):
                self._end_session(session_id)

    def decided(self, due: DueTrace) -> None:
        """The decision about a trace is committed."""
        self._traces.decided(due.trace_id)
        self._just_decided[due.trace_id] = None
        while len(self._just_decided) > _REMEMBER:
            self._just_decided.popitem(last=False)
        ended = self._endings.decided(due.trace_id)
        if ended is not None:
            self._end_session(ended)

    async def _take(self, request: bytes, split_request: Callable[[bytes], Split], instrument: str) -> Accepted:
        if self._is_draining():
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

    def _close_submitted(self, trace: Submitted) -> None:
        if self._traces.knows(trace.trace_id):
            self._endings.opened(trace.trace_id, trace.session_id)
            if not trace.fragment:
                self._traces.close(trace.trace_id)
        if trace.session_end and trace.session_id and self._endings.end(trace.session_id):
            self._end_session(trace.session_id)

    def _count_refused(self, taken: Sequence[TakenApart]) -> None:
        for each in taken:
            if each.problem:
                for instrument, split in (("pandaeval.spans", each.spans), ("pandaeval.logs", each.logs)):
                    self._telemetry.add(instrument, "decoded", split.decoded)
                    self._telemetry.add(instrument, "rejected", split.decoded, "invalid")

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
            self._telemetry.add("pandaeval.store.errors", "refused")
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
        add = self._telemetry.add
        add(instrument, "decoded", split.decoded)
        add(instrument, "stored", stored)
        add(instrument, "duplicate", duplicate)
        add(instrument, "own_output", split.own_output)
        add("pandaeval.claims", "own_output", split.claimed, instrument.removeprefix("pandaeval."))
        add(instrument, "rejected", split.rejected, "invalid")
        add(instrument, "rejected", late, "late")
        add(instrument, "ignored", split.ignored, "no_trace")


def _items(chunk: Chunk) -> list[Item]:
    """What a stored chunk holds. One that was damaged on disk holds nothing: its trace is given up when it is due."""
    try:
        return list(read_chunk(chunk.data, chunk.logs))
    except MalformedOtlpError as error:
        _log.error("spans of trace %s cannot be read any more (%s)", chunk.trace_id.hex(), error)
        return []


def _answer(split: Split, late: int) -> Accepted:
    messages = [split.message] if split.rejected else []
    if late:
        messages.append(f"{late} came after their trace was scored for good (late.window, close.max_spans)")
    return Accepted(split.rejected + late, "; ".join(messages))
