"""Tracks open traces and decides when each is complete.

Holds ids and numbers only. A single thread or event loop owns an assembler. A trace closes at the first of these
triggers:

- The processor closes it.
- Its root ended, no local parent is missing, and no span arrived for ``quiet`` seconds.
- Only remote parents are missing, and no span arrived for ``fragment_quiet`` seconds.
- No span arrived for ``idle`` seconds.
- It reaches ``max_age``, ``max_spans`` or ``max_bytes``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pandaeval_otel.model import Trigger
from pandaeval_otel.wire.fragments import Item

K = TypeVar("K", bound=Hashable)
_TRACE_BYTES, _ID_BYTES = 1000, 130
"""Bytes of memory of an open trace and of each item id, measured with 1 to 1,000 spans per trace."""


@dataclass(frozen=True, slots=True)
class CloseRules:
    """Limits at which a trace closes, in seconds, counts and bytes.

    ``reopen_delays``: seconds from late spans to each new decision.
    """

    quiet: float = 10.0
    idle: float = 180.0
    max_age: float = 1800.0
    fragment_quiet: float = 30.0
    max_spans: int = 10_000
    max_bytes: int = 32 << 20
    reopen_delays: tuple[float, ...] = (5.0, 30.0, 180.0, 180.0, 180.0)


@dataclass(frozen=True, slots=True)
class Decided:
    """Memory of a decided trace, to distinguish late spans from copies."""

    revision: int
    known: frozenset[bytes]
    chunks: tuple[int, ...] = ()
    size: int = 0
    final: bool = False
    """If true, late spans are only counted: ``max_spans`` or ``max_bytes`` closed the trace, or it was reopened too
    often or decided too long ago.
    """


@dataclass(frozen=True, slots=True)
class Added:
    """Item counts of a fragment. ``late`` items came after a final decision or cap, so the fragment is rejected."""

    stored: int = 0
    duplicate: int = 0
    late: int = 0
    reopened: bool = False


@dataclass(frozen=True, slots=True)
class DueTrace:
    """A trace to decide.

    ``chunks``: the caller's handles by arrival. ``complete``: the root ended. ``fragment``: missing spans belong to
    other processes.
    """

    trace_id: bytes
    trigger: Trigger
    complete: bool
    fragment: bool
    chunks: tuple[int, ...]
    known: frozenset[bytes]
    spans: int
    late_spans: int
    size: int
    revision: int

    @property
    def new_items(self) -> int:
        if self.revision > 1:
            return self.late_spans
        return len(self.known)

    @property
    def capped(self) -> bool:
        return self.trigger in (Trigger.SPAN_LIMIT, Trigger.MEMORY)


@dataclass(slots=True)
class _Open:
    first_at: float
    last_at: float
    revision: int = 1
    reopened_at: float | None = None
    explicit: bool = False
    has_root: bool = False
    remote_missing: bool = False
    spans: int = 0
    late_spans: int = 0
    size: int = 0
    known: set[bytes] = field(default_factory=set)
    missing: set[bytes] = field(default_factory=set)
    chunks: list[int] = field(default_factory=list)


class TraceAssembler:
    """Open traces by id. ``now`` is monotonic seconds. After a restart, all waits begin again."""

    def __init__(self, rules: CloseRules | None = None) -> None:
        self.rules = rules or CloseRules()
        self._open: dict[bytes, _Open] = {}
        self._deciding: dict[bytes, DueTrace] = {}
        self._ids = 0
        self._deadlines: Deadlines[bytes] = Deadlines(
            lambda trace_id: self._deadline(self._open[trace_id]) if trace_id in self._open else None
        )

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._open

    @property
    def deciding(self) -> int:
        """Number of traces from :meth:`take_due` without a reported decision."""
        return len(self._deciding)

    @property
    def items(self) -> int:
        """Number of undecided items. Visits every open trace."""
        waiting = sum(t.late_spans if t.revision > 1 else len(t.known) for t in self._open.values())
        return waiting + sum(due.new_items for due in self._deciding.values())

    @property
    def held_bytes(self) -> int:
        """Estimated memory of traces that are open or being decided, in bytes."""
        return _TRACE_BYTES * (len(self._open) + len(self._deciding)) + _ID_BYTES * self._ids

    def knows(self, trace_id: bytes) -> bool:
        return trace_id in self._open or trace_id in self._deciding

    def add(
        self, trace_id: bytes, items: Sequence[Item], chunk: int, size: int, now: float, decided: Decided | None = None
    ) -> Added:
        """Add the items of a stored chunk. Only unknown ids change timers or reopen a trace."""
        trace = self._open.get(trace_id)
        if trace is None:
            deciding = self._deciding.get(trace_id)
            if deciding is not None:
                decided = Decided(
                    deciding.revision, deciding.known, deciding.chunks, deciding.size, final=deciding.capped
                )
            known = decided.known if decided is not None else frozenset()
            new = sum(1 for item in items if item.id not in known)
            if decided is not None and not new:
                return Added(duplicate=len(items))
            if decided is not None and self.is_final(decided):
                return Added(duplicate=len(items) - new, late=new)
            trace = self._open[trace_id] = _Open(now, now)
            if decided is not None:
                trace.revision, trace.reopened_at = decided.revision + 1, now
                trace.known.update(decided.known)
                self._ids += len(trace.known)
                trace.chunks.extend(decided.chunks)
                trace.size = decided.size
                trace.spans = sum(1 for item_id in decided.known if len(item_id) == 8)
        elif self._is_full(trace):
            new = sum(1 for item in items if item.id not in trace.known)
            return Added(duplicate=len(items) - new, late=new)
        stored, duplicate = self._take(trace, items)
        self._ids += stored
        trace.chunks.append(chunk)
        trace.size += size
        if stored:
            trace.last_at = now
        if trace.reopened_at is not None:
            trace.late_spans += stored
        self._deadlines.set(trace_id, self._deadline(trace))
        return Added(stored, duplicate, reopened=trace.reopened_at is not None)

    def reopened(self) -> frozenset[bytes]:
        waiting = {trace_id for trace_id, trace in self._open.items() if trace.revision > 1}
        return frozenset(waiting | {trace_id for trace_id, due in self._deciding.items() if due.revision > 1})

    def close(self, trace_id: bytes) -> None:
        """Make a trace due now. Ignores unknown ids."""
        trace = self._open.get(trace_id)
        if trace is not None:
            trace.explicit = True
            self._deadlines.set(trace_id, trace.first_at)

    def take_due(self, now: float, limit: int = 256, most_bytes: float = math.inf) -> list[DueTrace]:
        """Return due traces, at most ``limit`` and until ``most_bytes``. Report each with :meth:`decided`."""
        due, size = list[DueTrace](), 0
        while len(due) < limit and size < most_bytes and (trace_id := self._deadlines.pop_due(now)) is not None:
            if trace_id in self._deciding:
                # It was reopened while its last decision is still being written: check again when that is done.
                self._deadlines.set(trace_id, now + 0.05)
                continue
            due.append(self._take_out(trace_id, self._trigger(self._open[trace_id], now)))
            size += due[-1].size
        return due

    def take_all(self, trigger: Trigger, limit: int = 256, most_bytes: float = math.inf) -> list[DueTrace]:
        """Return open traces, due or not, at shutdown or the end of a file."""
        due, size = list[DueTrace](), 0
        for trace_id in [trace_id for trace_id in self._open if trace_id not in self._deciding][:limit]:
            if size >= most_bytes:
                break
            due.append(self._take_out(trace_id, trigger))
            size += due[-1].size
        return due

    def decided(self, trace_id: bytes) -> None:
        """Record a stored decision. From now on the caller remembers the trace."""
        due = self._deciding.pop(trace_id, None)
        self._ids -= 0 if due is None else len(due.known)

    def forget(self, trace_id: bytes) -> tuple[int, tuple[int, ...]]:
        """Remove an open trace. Returns its undecided items and chunks. Raises :class:`KeyError` if it is not open."""
        trace = self._open.pop(trace_id)
        self._ids -= len(trace.known)
        return trace.late_spans if trace.revision > 1 else len(trace.known), tuple(trace.chunks)

    def next_deadline(self) -> float | None:
        """Return when to call :meth:`take_due` next; ``None`` if no trace is open."""
        return self._deadlines.next_deadline()

    def is_final(self, decided: Decided) -> bool:
        return decided.final or decided.revision > len(self.rules.reopen_delays)

    def _is_full(self, trace: _Open) -> bool:
        return trace.spans >= self.rules.max_spans or trace.size >= self.rules.max_bytes

    def _take(self, trace: _Open, items: Iterable[Item]) -> tuple[int, int]:
        stored = duplicate = 0
        known = trace.known
        for item in items:
            if item.id in known:
                duplicate += 1
                continue
            known.add(item.id)
            stored += 1
            if item.is_log:
                continue
            trace.spans += 1
            trace.missing.discard(item.id)
            if not item.parent:
                trace.has_root = True
            elif item.remote:
                trace.remote_missing = trace.remote_missing or item.parent not in known
            elif item.parent not in known:
                trace.missing.add(item.parent)
        return stored, duplicate

    def _deadline(self, trace: _Open) -> float:
        rules = self.rules
        if trace.explicit or self._is_full(trace):
            return trace.first_at
        if trace.reopened_at is not None:
            return trace.reopened_at + rules.reopen_delays[min(trace.revision - 2, len(rules.reopen_delays) - 1)]
        wait = rules.idle
        if trace.has_root and not trace.missing:
            wait = rules.quiet
        elif _is_fragment(trace):
            wait = rules.fragment_quiet
        return min(trace.last_at + wait, trace.first_at + rules.max_age)

    def _trigger(self, trace: _Open, now: float) -> Trigger:
        if trace.spans >= self.rules.max_spans:
            return Trigger.SPAN_LIMIT
        if trace.size >= self.rules.max_bytes:
            return Trigger.MEMORY
        if trace.explicit:
            return Trigger.EXPLICIT
        if trace.has_root and not trace.missing:
            return Trigger.ROOT_ENDED
        if now >= trace.first_at + self.rules.max_age:
            return Trigger.MAX_AGE
        return Trigger.IDLE

    def _take_out(self, trace_id: bytes, trigger: Trigger) -> DueTrace:
        trace = self._open.pop(trace_id)
        due = DueTrace(
            trace_id=trace_id,
            trigger=trigger,
            complete=trace.has_root,
            fragment=_is_fragment(trace),
            chunks=tuple(trace.chunks),
            known=frozenset(trace.known),
            spans=trace.spans,
            late_spans=trace.late_spans,
            size=trace.size,
            revision=trace.revision,
        )
        self._deciding[trace_id] = due
        return due


def _is_fragment(trace: _Open) -> bool:
    return trace.spans > 0 and not trace.has_root and not trace.missing and trace.remote_missing


class Deadlines(Generic[K]):
    """A heap of movable deadlines, in seconds of any clock.

    ``due_at(key)`` returns the current deadline; ``None`` for a removed key.
    """

    def __init__(self, due_at: Callable[[K], float | None]) -> None:
        self._due_at = due_at
        self._heap: list[tuple[float, int, K]] = []
        self._scheduled: dict[K, float] = {}
        self._ticket = 0

    def set(self, key: K, deadline: float) -> None:
        """Check ``key`` no later than ``deadline``."""
        scheduled = self._scheduled.get(key)
        if scheduled is None or deadline < scheduled:
            self._push(key, deadline)

    def pop_due(self, now: float) -> K | None:
        """Return a due key or ``None``. The caller must remove or move the key."""
        while self._heap and self._heap[0][0] <= now:
            deadline, _, key = heapq.heappop(self._heap)
            if self._scheduled.get(key) != deadline:
                continue  # an earlier push replaced this push
            del self._scheduled[key]
            true_deadline = self._due_at(key)
            if true_deadline is None:
                continue
            if true_deadline <= now:
                return key
            self._push(key, true_deadline)
        return None

    def next_deadline(self) -> float | None:
        """Return when to check next, possibly early; ``None`` if empty."""
        if self._heap:
            return self._heap[0][0]
        return None

    def _push(self, key: K, deadline: float) -> None:
        self._scheduled[key] = deadline
        self._ticket += 1
        heapq.heappush(self._heap, (deadline, self._ticket, key))
