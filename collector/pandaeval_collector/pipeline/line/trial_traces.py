"""Reads the traces of a trial again, which was whole long after they were decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_collector.pipeline.line.understanding import with_session
from pandaeval_collector.scoring.cases.matching import TrialTrace
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing


class NotKeptError(Exception):
    """Not all of a trial can be read; the text says why."""


def read_again(store: Store, traces: Iterable[TrialTrace], most: float = math.inf) -> tuple[Trace, ...]:
    """The traces as they were when they were decided, each in the session that it was placed in; of up to ``most``
    bytes. Raises :class:`NotKeptError`, and what decoding raises."""
    found: list[Trace] = []
    size = 0
    for each in traces:
        parts = store.contents(bytes.fromhex(each.trace_id))
        size += sum(len(data) for _, data in parts)
        if size > most:
            raise NotKeptError(f"its spans take more than {most / (1 << 20):g} MiB")
        found.append(_made(parts, each))
    return tuple(found)


def _made(parts: Sequence[Part], each: TrialTrace) -> Trace:
    trace = rebuilt(parts, Closing(each.trigger, each.revision, each.late_spans)).trace if parts else None
    if trace is None:
        raise NotKeptError(
            f"the spans of trace {each.trace_id} are not kept here (store.keep_content; sessions shared by collectors)"
        )
    if each.session_id is None or each.session_id == trace.session_id:
        return trace
    return with_session(trace, each.session_id)
