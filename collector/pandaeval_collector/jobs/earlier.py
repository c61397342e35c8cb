"""What was said and done in the earlier traces of a session, for a judge of a later one."""

from __future__ import annotations

from collections import OrderedDict

from pandaeval_collector.judge.before import lines_of
from pandaeval_collector.judge.redact import Hide, redacted
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing

NEWEST = 24
"""So many of the earlier traces are read."""
_REMEMBER = 512


class EarlierTraces:
    """Reads them from the store, and keeps what the last 512 of them said. One thread."""

    def __init__(self, store: Store, hide: Hide | None) -> None:
        self._store, self._hide = store, hide
        self._said: OrderedDict[tuple[bytes, str], tuple[str, ...]] = OrderedDict()

    def before(self, trace: Trace) -> tuple[str, ...]:
        """What was said, called and given back in the session before ``trace`` began, oldest first, redacted; nothing
        without a session. A trace whose spans are not kept any more is left out."""
        if trace.session_id is None:
            return ()
        rows = self._store.session_traces(trace.session_id)
        own = bytes.fromhex(trace.trace_id)
        earlier = [row.trace_id for row in rows if row.end_ns <= trace.start_ns and row.trace_id != own]
        return tuple(line for trace_id in earlier[-NEWEST:] for line in self._lines(trace_id))

    def turns(self, trace: Trace) -> int | None:
        """How many turns of its conversation came before ``trace``; ``None`` without a session."""
        if trace.session_id is None:
            return None
        rows = self._store.session_traces(trace.session_id)
        own = bytes.fromhex(trace.trace_id)
        before = (row for row in rows if row.end_ns <= trace.start_ns and row.trace_id != own)
        return sum(from_row(row).facts.turns for row in before)

    def whole(self, session_id: str) -> tuple[list[Trace], int]:
        """The first and the newest traces of a session, oldest first, redacted, and how many of it are missing."""
        ids = [row.trace_id for row in self._store.session_traces(session_id)]
        shown = ids if len(ids) <= NEWEST else [ids[0], *ids[1 - NEWEST :]]
        found = [trace for trace_id in shown if (trace := self._trace(trace_id)) is not None]
        hide = self._hide
        return found if hide is None else [redacted(trace, hide) for trace in found], len(ids) - len(found)

    def _trace(self, trace_id: bytes) -> Trace | None:
        return rebuilt(self._store.contents(trace_id), Closing(Trigger.SESSION_CHANGED)).trace

    def _lines(self, trace_id: bytes) -> tuple[str, ...]:
        held = self._store.held(trace_id)
        if held is None:
            return ()
        key = trace_id, held[0]
        found = self._said.get(key)
        if found is None:
            found = self._said[key] = self._read(trace_id)
            while len(self._said) > _REMEMBER:
                self._said.popitem(last=False)
        return found

    def _read(self, trace_id: bytes) -> tuple[str, ...]:
        trace = self._trace(trace_id)
        if trace is None:  # its spans are not kept any more
            return ()
        return lines_of(trace if self._hide is None else redacted(trace, self._hide))
