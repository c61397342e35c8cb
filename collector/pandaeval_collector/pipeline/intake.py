"""Takes requests in: splits them by trace, stores what is new, and only then acknowledges it; items that the store has
and items of traces that were scored for good are counted and not stored. People's verdicts are stored apart.

Runs on one event loop together with the assembler of open traces, so there are no locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pandaeval_collector.pipeline.item_counts import ItemCounts
from pandaeval_collector.pipeline.submitted import (
    NO_WORDS,
    SessionEndings,
    TakenApart,
    added_up,
    endings_of,
    take_all_apart,
    words_of,
)
from pandaeval_collector.receivers import Accepted, Dense, Draining, Malformed, Overloaded, Submitted
from pandaeval_collector.runtime import failpoints
from pandaeval_collector.runtime.aside import aside
from pandaeval_collector.store import Chunk, Consumed, Store, StoreFullError, StoreGoneError
from pandaeval_collector.telemetry import Telemetry
from pandaeval_otel.assembly import Decided, DueTrace, TraceAssembler
from pandaeval_otel.fragments import DenseError, Fragment, Item, MalformedOtlpError, Split
from pandaeval_otel.labels import Label
from pandaeval_otel.wire import read_chunk, split_logs, split_traces

_log = logging.getLogger(__name__)

_REMEMBER = 50_000
_ON_LOOP = 5_000
"""Spans or records, with their resources and scopes, that are taken apart on the event loop: some 50 ms at worst."""
_AT_ONCE = 1_000
"""Fragments of a request, or submitted traces, after which the event loop gets its turn."""
_PER_COMMIT = 1_000
"""Chunks of a request after which the commits of others get their turn."""
T = TypeVar("T")
R = TypeVar("R")


class Intake:
    """Takes in spans and log records. It calls ``end_session`` with each session that an application ended, once none
    of the session's traces waits for its decision. ``is_draining``: whether requests are refused because the collector
    stops."""

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
        self._endings, self._counts = SessionEndings(), ItemCounts(telemetry)
        self._just_decided: OrderedDict[bytes, None] = OrderedDict()

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        """Stores the spans of an OTLP request; returns after the commit. Raises a ``Refusal``."""
        return await self._take(request, split_traces, "pandaeval.spans", large)

    async def logs(self, request: bytes, large: bool = False) -> Accepted:
        """Stores the log records of an OTLP request that belong to traces; returns after the commit."""
        return await self._take(request, split_logs, "pandaeval.logs", large)

    async def submit(self, traces: Sequence[Submitted], large: bool = False) -> list[str]:
        """Stores completed traces in one commit, and closes those that are no fragments; see
        :class:`pandaeval_collector.receivers.SubmissionIngest`."""
        if self._is_draining():
            raise Draining("the collector is shutting down")
        taken = await aside(take_all_apart, traces) if large else take_all_apart(traces)
        failpoints.reach("after_decode")
        good = [each for each in taken if not each.problem]
        groups = [
            _Group("pandaeval.spans", [fragment for each in good for fragment in each.spans.fragments]),
            _Group("pandaeval.logs", [fragment for each in good for fragment in each.logs.fragments]),
        ]
        await self._label([label for each in good for label in each.logs.labels])
        await self._keep(groups, words_of(good), endings_of(good))
        self._counts.in_no_fragment("pandaeval.spans", added_up(each.spans for each in good))
        self._counts.in_no_fragment("pandaeval.logs", added_up(each.logs for each in good))
        self._counts.refused(taken)
        any_late = any(group.late for group in groups)
        for each in good:
            self._close_submitted(each.submitted)
        failpoints.reach_soon("after_ack")
        return [each.problem or (self._too_late(each) if any_late else "") for each in taken]

    async def consume(self, spans: Sequence[Split], read: Sequence[Consumed], logs: Sequence[Split] = ()) -> None:
        """Stores the spans and log records of messages of a log, and with them how far it was read; returns after the
        commit. Raises a ``Refusal``, after which the same messages have to come again."""
        if self._is_draining():
            raise Draining("the collector is shutting down")
        failpoints.reach("after_decode")
        found = {"pandaeval.spans": spans, "pandaeval.logs": logs}
        await self._label([label for split in (*spans, *logs) for label in split.labels])
        groups = [_Group(name, [part for each in splits for part in each.fragments]) for name, splits in found.items()]
        await self._keep(groups, read=read)
        for instrument, splits in found.items():
            whole = added_up(splits)
            whole.rejected = sum(split.rejected for split in splits)
            self._counts.in_no_fragment(instrument, whole)
        failpoints.reach_soon("after_ack")

    async def let_go(self, trace_ids: Iterable[bytes]) -> None:
        """Forgets those of some traces that are open, with their spans: another collector goes on with them."""
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
        """Gives the assembler the open traces of the store, and ends the sessions whose end the store has noted."""
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
        """Notes that the decision about a trace was committed, and ends a session that waited for it."""
        self._traces.decided(due.trace_id)
        self._just_decided[due.trace_id] = None
        while len(self._just_decided) > _REMEMBER:
            self._just_decided.popitem(last=False)
        ended = self._endings.decided(due.trace_id)
        if ended is not None:
            self._end_session(ended)

    async def _take(
        self, request: bytes, split_request: Callable[..., Split], instrument: str, large: bool
    ) -> Accepted:
        if self._is_draining():
            raise Draining("the collector is shutting down")
        try:
            if large:
                split = await aside(split_request, request)
            else:
                split = split_request(request, at_most=_ON_LOOP)
        except DenseError as error:
            raise Dense("it would hold up the event loop") from error
        except MalformedOtlpError as error:
            raise Malformed(str(error)) from error
        failpoints.reach("after_decode")
        group = _Group(instrument, split.fragments)
        await self._label(split.labels)
        await self._keep([group])
        self._counts.in_no_fragment(instrument, split)
        failpoints.reach_soon("after_ack")
        return _answer(split, group.late)

    def _close_submitted(self, trace: Submitted) -> None:
        if self._traces.knows(trace.trace_id):
            self._endings.opened(trace.trace_id, trace.session_id)
            if not trace.fragment:
                self._traces.close(trace.trace_id)
        if trace.session_end and trace.session_id and self._endings.end(trace.session_id):
            self._end_session(trace.session_id)

    def _too_late(self, taken: TakenApart) -> str:
        """Why a valid submitted trace was not stored: it was scored for good before. Empty if it was stored."""
        trace_id = taken.submitted.trace_id
        decided = None if self._traces.knows(trace_id) else self._store.decided([trace_id]).get(trace_id)
        if decided is None or not self._traces.is_final(decided):
            return ""
        items = [item for split in (taken.spans, taken.logs) for fragment in split.fragments for item in fragment.items]
        return "late: the trace was scored for good" if any(item.id not in decided.known for item in items) else ""

    async def _keep(
        self,
        groups: Sequence[_Group],
        words: Mapping[bytes, Submitted] = NO_WORDS,
        endings: Sequence[str] = (),
        read: Sequence[Consumed] = (),
    ) -> None:
        """Stores the new fragments of ``groups``, what applications said about their traces, and how far a log was
        ``read``, in one commit; then counts the items and gives them to the assembler."""
        with self._refusing():
            remembered: dict[bytes, Decided] = {}
            for group in groups:
                await self._sort_out(group, remembered, words)
            chunks = [chunk for group in groups for _, chunk in group.wanted]
            if chunks or endings or read:
                await self._commit(chunks, endings, read)
            for group in groups:
                await self._assemble(group, remembered)

    async def _label(self, labels: Sequence[Label]) -> None:
        """Keeps people's verdicts; they change nothing about their traces."""
        for start in range(0, len(labels), _PER_COMMIT):
            with self._refusing():
                some = self._store.people.put(labels[start : start + _PER_COMMIT], time.time())
                for fate, number in (await asyncio.wrap_future(some)).items():
                    self._telemetry.add("pandaeval.labels", fate, number)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Says of a store that cannot be written to what the sender can do about it."""
        try:
            self._store.require()
            yield
        except StoreFullError as error:
            raise Overloaded(str(error)) from error
        except StoreGoneError as error:
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise Draining(f"the collector has to be restarted: {error}") from error
        except sqlite3.Error as error:
            _log.error("a request could not be stored (%s); its sender is asked to come back", error)
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise Overloaded("the store cannot be written to just now") from error

    async def _commit(self, chunks: Sequence[Chunk], endings: Sequence[str], read: Sequence[Consumed]) -> None:
        """Stores all chunks of a request or deletes those that it stored before the error. More than a thousand chunks
        take several commits, so that requests of other senders are committed in between."""
        last = max(0, len(chunks) - 1) // _PER_COMMIT * _PER_COMMIT
        for start in range(0, last + 1, _PER_COMMIT):
            part = chunks[start : start + _PER_COMMIT]
            try:
                ends = start == last
                await asyncio.wrap_future(self._store.append(part, endings if ends else (), read if ends else ()))
            except (sqlite3.Error, StoreFullError):
                if start:
                    self._store.discard([chunk.id for chunk in chunks[:start]])
                raise

    def _remembered(self, fragments: Sequence[Fragment]) -> dict[bytes, Decided]:
        unknown = [fragment.trace_id for fragment in fragments if not self._traces.knows(fragment.trace_id)]
        return self._store.decided(unknown) if unknown else {}

    async def _sort_out(
        self, group: _Group, remembered: dict[bytes, Decided], words: Mapping[bytes, Submitted]
    ) -> None:
        """Fills ``group.wanted`` with the fragments to be stored. Adds to ``remembered`` what the store knows about
        traces that were decided before."""
        async for some in _slices(group.fragments):
            remembered.update(self._remembered(some))
            for fragment in some:
                decided = remembered.get(fragment.trace_id)
                if decided is not None:
                    new = sum(1 for item in fragment.items if item.id not in decided.known)
                    if not new or self._traces.is_final(decided):
                        group.known += len(fragment.items) - new
                        group.late += new
                        continue
                group.wanted.append((fragment, self._chunk(fragment, words.get(fragment.trace_id))))

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

    async def _assemble(self, group: _Group, remembered: dict[bytes, Decided]) -> None:
        """Gives committed fragments to the assembler. A trace may have been decided during the commit."""
        self._counts.kept(group.instrument, 0, group.known, group.late)
        useless: list[int] = []
        async for some in _slices(group.wanted):
            now = self._clock()
            stored = known = late = 0
            for fragment, chunk in some:
                decided = remembered.get(fragment.trace_id)
                if fragment.trace_id in self._just_decided and not self._traces.knows(fragment.trace_id):
                    decided = self._store.decided([fragment.trace_id]).get(fragment.trace_id)
                added = self._traces.add(fragment.trace_id, fragment.items, chunk.id, len(chunk.data), now, decided)
                stored, known, late = stored + added.stored, known + added.duplicate, late + added.late
                if added.late or (not added.stored and fragment.trace_id not in self._traces):
                    useless.append(chunk.id)
            # At once: whoever asks while the loop has its turn finds books that balance.
            self._counts.kept(group.instrument, stored, known, late)
            group.late += late
        if useless:
            self._store.discard(useless)


@dataclass(slots=True)
class _Group:
    """Fragments of one signal. ``wanted``: those to be stored; ``known``, ``late``: how many items the store has
    already, and how many came after their trace was scored for good."""

    instrument: str
    fragments: Sequence[Fragment]
    wanted: list[tuple[Fragment, Chunk]] = field(default_factory=list)
    known: int = 0
    late: int = 0


async def _slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yields ``items``, a thousand at a time if there are more, and lets the event loop run in between."""
    if len(items) <= _AT_ONCE:
        yield items
        return
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
        await asyncio.sleep(0)


def _items(chunk: Chunk) -> list[Item]:
    """The items of a stored chunk; none if it was damaged on disk, so that its trace is given up when it is due."""
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
