"""Which traces a run is about."""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_collector.judge.selection import included
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.store import Store

Chosen = tuple[int, int, str]
"""Number of a trace, number of its session (0: none), and what its being in a sample depends on."""


def choose(store: Store, spec: RunSpec, after: int, upto: int) -> tuple[list[Chosen], int]:
    """Traces with numbers above ``after`` that a run is about, a page of them, and where the page ends. Blocks."""
    rows, last = store.runs.chosen(spec.wanted, after, upto, spec.decided)
    return [
        (no, session, session_id or trace_id.hex())
        for no, session, trace_id, session_id in rows
        if session or spec.of_traces
    ], last


def sampled(found: Sequence[Chosen], spec: RunSpec) -> list[Chosen]:
    """Those in the sample: sessions whole, and the same ones as live."""
    return [each for each in found if included(each[2], spec.sample)]
