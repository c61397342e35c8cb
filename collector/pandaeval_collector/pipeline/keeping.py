"""Stores fragments of traces in one commit and gives them to the assembler of open traces.

Items that the store has and items of traces that were scored for good are counted and not stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
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
"""Fragments of a request, or submitted traces, after which the event loop gets its turn."""
_PER_COMMIT = 1_000
"""Chunks of a request after which the commits of others get their turn."""
_SILENCE = 60.0
"""Seconds between two words in the log about refusals for want of room."""
T = TypeVar("T")


@dataclass(slots=True)
class FragmentGroup:
    """Fragments of one signal. ``wanted``: those to be stored; ``known``, ``late``: how many items the store has
    already, and how many came after their trace was scored for good."""

    instrument: str
    fragments: Sequence[Fragment]
    wanted: list[tuple[Fragment, Chunk]] = field(default_factory=list)
    known: int = 0
    late: int = 0


class Keeper:
    """Stores what came in. Runs on the event loop of the assembler, so there are no locks. Raises a ``Refusal`` where
    nothing can be stored."""

    def __init__(
        self,
        store: Store,
        traces: TraceAssembler,
        telemetry: Telemetry,
        clock: Callable[[], float],
        open_bytes: int,
    ) -> None:
        """``open_bytes``: memory that open traces may take; beyond it nothing is stored."""
        self._store, self._traces, self._telemetry, self._clock = store, traces, telemetry, clock
        self._open_bytes = open_bytes
        self._decided_meanwhile: list[set[bytes]] = []
        self._silent_until = float("-inf")

    def decided(self, trace_id: bytes) -> None:
        """Note that a trace's decision was committed, for each request that is being stored: it may hold fragments of
        the trace."""
        for decided in self._decided_meanwhile:
            decided.add(trace_id)

    async def keep(
        self,
        groups: Sequence[FragmentGroup],
        words: Mapping[bytes, CompletedTrace],
        endings: Sequence[str],
        read: Sequence[Consumed],
    ) -> None:
        """Store the new fragments of ``groups``, what applications said about their traces, and how far a log was
        ``read``, in one commit; then counts the items and gives them to the assembler."""
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
        """Raise :class:`Overloaded` where more came than is decided: what is stored is read again at a start, so that
        a collector that ran out of memory would do so again. To be called before a request is taken apart, since what
        refusals cost is lost for deciding."""
        held = self._traces.held_bytes
        if held >= self._open_bytes:
            raise self._overloaded(
                f"traces that are not decided yet take {held:,} of {self._open_bytes:,} bytes of memory "
                "(server.max_open_bytes): more comes than is decided"
            )

    def _overloaded(self, why: str) -> Overloaded:
        """Make a refusal for want of room, and log one such a minute."""
        now = self._clock()
        if now >= self._silent_until:
            _log.warning("senders are asked to come back: %s", why)
            self._silent_until = now + _SILENCE
        return Overloaded(why)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn the errors of a store that cannot be written to into refusals, by which the sender knows what to do."""
        try:
            yield
        except StoreFullError as error:
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise self._overloaded(str(error)) from error
        except sqlite3.Error as error:
            _log.error("a request could not be stored (%s); its sender is asked to come back", error)
            self._telemetry.add("pandaeval.store.errors", "refused")
            raise Overloaded("the store cannot be written to just now") from error

    async def _commit(self, chunks: Sequence[Chunk], endings: Sequence[str], read: Sequence[Consumed]) -> None:
        """Store all chunks of a request; on an error deletes those that were stored before it. More than a thousand
        chunks take several commits, so that requests of other senders are committed in between."""
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
        """Fill ``group.wanted`` with the fragments to be stored. Adds to ``remembered`` what the store knows about
        traces that were decided before."""
        async for some in _slices(group.fragments):
            if unknown := [each.trace_id for each in some if not self._traces.knows(each.trace_id)]:
                remembered.update(self._store.decided(unknown))
            for fragment in some:
                decided = remembered.get(fragment.trace_id)
                if decided is not None:
                    new = sum(1 for item in fragment.items if item.id not in decided.known)
                    if not new or self._traces.is_final(decided):
                        group.known += len(fragment.items) - new
                        group.late += new
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
        """Give committed fragments to the assembler. ``meanwhile``: traces that were decided during the commit."""
        count_kept(self._telemetry, group.instrument, 0, group.known, group.late)
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
                if added.late or (not added.stored and fragment.trace_id not in self._traces):
                    useless.append(chunk.id)
            # At once: whoever reads the counts between two slices finds that they balance.
            count_kept(self._telemetry, group.instrument, stored, known, late)
            group.late += late
        if useless:
            self._store.discard(useless)


async def _slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yield ``items``, a thousand at a time if there are more, and lets the event loop run in between."""
    if len(items) <= _AT_ONCE:
        yield items
        return
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
        await asyncio.sleep(0)
