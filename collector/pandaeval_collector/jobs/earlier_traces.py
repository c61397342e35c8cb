"""Reads the earlier traces of a session, for the judge of a later trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pandaeval_collector.judge.context import lines_of
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.store import SessionTraceRow, StoreReader
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing

NEWEST = 24
"""So many of the earlier traces are read."""
_REMEMBER_SAID = 512


class EarlierTraces:
    """Reads a session's earlier traces from the store, and keeps the texts of the last 512. One thread."""

    def __init__(self, store: StoreReader, shown: Callable[[Trace], Trace]) -> None:
        """``shown`` redacts a trace."""
        self._store, self._shown = store, shown
        self._lines = lru_cache(_REMEMBER_SAID)(self._read)

    def before(self, trace: Trace) -> tuple[str, ...]:
        """Returns what was said, called and returned in the session before ``trace`` began, oldest first, redacted;
        nothing without a session. Leaves out traces whose spans were deleted."""
        if trace.session_id is None:
            return ()
        rows = self._before(trace)[-NEWEST:]
        kept = [(row.trace_id, held[0]) for row in rows if (held := self._store.held(row.trace_id)) is not None]
        return tuple(line for each in kept for line in self._lines(*each))

    def turns(self, trace: Trace) -> int | None:
        """Returns how many turns of its conversation came before ``trace``; ``None`` without a session."""
        if trace.session_id is None:
            return None
        return sum(from_row(row).facts.turns for row in self._before(trace))

    def _before(self, trace: Trace) -> list[SessionTraceRow]:
        own, rows = bytes.fromhex(trace.trace_id), self._store.session_traces(trace.session_id or "")
        return [row for row in rows if row.end_ns <= trace.start_ns and row.trace_id != own]

    def whole(self, session_id: str) -> tuple[list[Trace], int]:
        """Returns the first and the newest traces of a session, oldest first, redacted, and how many are missing."""
        ids = [row.trace_id for row in self._store.session_traces(session_id)]
        shown = ids if len(ids) <= NEWEST else [ids[0], *ids[1 - NEWEST :]]
        found = [self._shown(trace) for trace_id in shown if (trace := self._trace(trace_id)) is not None]
        return found, len(ids) - len(found)

    def _trace(self, trace_id: bytes) -> Trace | None:
        return rebuilt(self._store.contents(trace_id), Closing(Trigger.SESSION_CHANGED)).trace

    def _read(self, trace_id: bytes, digest: str) -> tuple[str, ...]:
        """Returns the lines of a trace as far as its evidence of ``digest`` is kept."""
        trace = self._trace(trace_id)
        return () if trace is None else lines_of(self._shown(trace))
