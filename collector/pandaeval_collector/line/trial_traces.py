"""Reads the traces of a trial again, which was whole long after they were decided."""

from __future__ import annotations

from collections.abc import Iterable

from pandaeval_collector.cases.matching import Stored
from pandaeval_collector.line.reading import rebuilt
from pandaeval_collector.line.understanding import with_session
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing


class NotKeptError(Exception):
    """The spans of a trace are not kept any more."""


def read_again(store: Store, traces: Iterable[Stored]) -> tuple[Trace, ...]:
    """The traces as they were when they were decided, each in the session that it was placed in. Raises
    :class:`NotKeptError`, and what decoding raises."""
    return tuple(_one(store, each) for each in traces)


def _one(store: Store, each: Stored) -> Trace:
    parts = store.contents(bytes.fromhex(each.trace_id))
    trace = rebuilt(parts, Closing(each.trigger, each.revision, each.late_spans)).trace if parts else None
    if trace is None:
        raise NotKeptError(f"the spans of trace {each.trace_id} are not kept any more")
    if each.session_id is None or each.session_id == trace.session_id:
        return trace
    return with_session(trace, each.session_id)
