"""Stores fragments in one commit and adds them to the assembler.

Duplicates and items of finally decided traces are only counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.accounting import count_kept
from pandaeval_collector.receivers import Overloaded
from pandaeval_collector.store import Chunk, Consumed, Store, StoreFullError
from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace
from pandaeval_otel.assembly import Decided, TraceAssembler
from pandaeval_otel.wire.fragments import Fragment

_log = logging.getLogger(__name__)

_AT_ONCE = 1_000
"""Fragments or submitted traces after which the event loop runs."""
_PER_COMMIT = 1_000
"""Chunks of a request after which other commits run."""
_SILENCE = 60.0
"""Seconds between log messages about overload."""
T = TypeVar("T")


@dataclass(slots=True)
class FragmentGroup:
    """Fragments of spans or of logs. ``wanted``: to be stored. ``known``: number of duplicates. ``late``: number of
    late items, by trace.
    """

    instrument: str
    fragments: Sequence[Fragment]
    wanted: list[tuple[Fragment, Chunk]] = field(default_factory=list)
    known: int = 0
    late: Counter[bytes] = field(default_factory=Counter)


class Keeper:
    """Stores fragments on the assembler's event loop. Raises a ``Refusal``."""

    def __init__(
        self,
        store: Store,
        traces: TraceAssembler,
        telemetry: Telemetry,
        clock: Callable[[], float],
        open_bytes: int,
    ) -> None:
        self._store, self._traces, self._telemetry, self._clock = store, traces, telemetry, clock
        self._open_bytes = open_bytes
        self._decided_meanwhile: list[set[bytes]] = []
        self._silent_until = float("-inf")

    def decided(self, trace_id: bytes) -> None:
        """Record a committed decision for requests that are being stored."""
        for decided in self._decided_meanwhile:
            decided.add(trace_id)

    async def keep(
        self,
        groups: Sequence[FragmentGroup],
        words: Mapping[bytes, CompletedTrace],
        endings: Sequence[str],
        read: Sequence[Consumed],
    ) -> None:
        """Store new fragments, submission data and Kafka offsets ``read`` in one commit, then count and
        assemble them.
        """
        meanwhile: set[bytes] = set()
        self._decided_meanwhile.append(meanwhile)
        try:
            with self.refusing():
                remembered: dict[bytes, Decided] = {}
                for group in groups:
                    await self._sort_out(group, remembered, words)
                chunks = [chunk for group in groups for _, chunk in group.wanted]
                if chunks or endings or read:
                    await self._commit(chunks, endings, read)
                for group in groups:
                    await self._assemble(group, remembered, meanwhile)
        finally:
            self._decided_meanwhile = [each for each in self._decided_meanwhile if each is not meanwhile]

    def require_memory(self) -> None:
        """Raise :class:`Overloaded` above the memory limit. Call before splitting a request."""
        held = self._traces.held_bytes
        if held >= self._open_bytes:
            raise self._overloaded(
                f"traces without scores take {held:,} of {self._open_bytes:,} bytes of memory "
                "(server.max_open_bytes): spans arrive faster than they are scored"
            )

    def _overloaded(self, why: str) -> Overloaded:
        now = self._clock()
        if now >= self._silent_until:
            _log.warning("senders must retry later: %s", why)
            self._silent_until = now + _SILENCE
        return Overloaded(why)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn store errors into refusals with a retry time."""
        try:
            yield
        except StoreFullError as error:
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise self._overloaded(str(error)) from error
        except sqlite3.Error as error:
            _log.error("a request could not be stored (%s); its sender must retry it", error)
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise Overloaded("the store is not writable now") from error

    async def _commit(self, chunks: Sequence[Chunk], endings: Sequence[str], read: Sequence[Consumed]) -> None:
        """Store all chunks of a request, or none. Above a thousand chunks, uses several commits."""
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

    async def _sort_out(
        self, group: FragmentGroup, remembered: dict[bytes, Decided], words: Mapping[bytes, CompletedTrace]
    ) -> None:
        async for some in _slices(group.fragments):
            if unknown := [each.trace_id for each in some if not self._traces.knows(each.trace_id)]:
                remembered.update(self._store.decided(unknown))
            for fragment in some:
                decided = remembered.get(fragment.trace_id)
                if decided is not None:
                    new = sum(1 for item in fragment.items if item.id not in decided.known)
                    if not new or self._traces.is_final(decided):
                        group.known += len(fragment.items) - new
                        group.late[fragment.trace_id] += new
                        continue
                word = words.get(fragment.trace_id)
                chunk = Chunk(
                    id=self._store.next_chunk_id(),
                    trace_id=fragment.trace_id,
                    logs=fragment.logs,
                    items=len(fragment.items),
                    start_ns=fragment.start_ns,
                    data=fragment.chunk,
                    session=word.session_id if word is not None else "",
                    closes=word is not None and not word.fragment,
                )
                group.wanted.append((fragment, chunk))

    async def _assemble(
        self, group: FragmentGroup, remembered: dict[bytes, Decided], meanwhile: Container[bytes]
    ) -> None:
        count_kept(self._telemetry, group.instrument, 0, group.known, group.late.total())
        useless: list[int] = []
        async for some in _slices(group.wanted):
            now = self._clock()
            stored = known = late = 0
            for fragment, chunk in some:
                decided = remembered.get(fragment.trace_id)
                if fragment.trace_id in meanwhile and not self._traces.knows(fragment.trace_id):
                    decided = self._store.decided([fragment.trace_id]).get(fragment.trace_id)
                added = self._traces.add(fragment.trace_id, fragment.items, chunk.id, len(chunk.data), now, decided)
                stored, known, late = stored + added.stored, known + added.duplicate, late + added.late
                if added.late:
                    group.late[fragment.trace_id] += added.late
                if added.late or (not added.stored and fragment.trace_id not in self._traces):
                    useless.append(chunk.id)
            # Without a pause, so that the counts balance at any time.
            count_kept(self._telemetry, group.instrument, stored, known, late)
        if useless:
            self._store.discard(useless)


async def _slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    if len(items) <= _AT_ONCE:
        yield items
        return
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
        await asyncio.sleep(0)
