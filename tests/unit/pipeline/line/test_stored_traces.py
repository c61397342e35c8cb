"""Stored chunks become isolated traces in order."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from contextlib import AbstractContextManager

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.pipeline.line import stored_traces
from pandaeval_collector.pipeline.line.stored_traces import Part, closing_of, parts_of, rebuilt, stored
from pandaeval_collector.pipeline.line.understanding import Understanding
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger
from pandaeval_otel.wire.splitting import split_traces
from support.made_traces import Composer, MadeTrace


class Kept:
    """Implements ``Chunks`` in memory. ``asked``: IDs read."""

    def __init__(self) -> None:
        self.held: dict[int, Part] = {}
        self.asked: list[list[int]] = []

    def keep(self, made: MadeTrace) -> DueTrace:
        requests = [made.request([span]).SerializeToString() for span in made.spans]
        data = [each.chunk for request in requests for each in split_traces(request).fragments]
        ids = range(len(self.held), len(self.held) + len(data))
        self.held.update(zip(ids, ((False, each) for each in data), strict=True))
        size = sum(map(len, data))
        return DueTrace(made.trace_id, Trigger.ROOT_ENDED, True, False, tuple(ids), frozenset(), 0, 3, size, 2)

    def chunks(self, ids: Collection[int]) -> dict[int, Part]:
        self.asked.append([*ids])
        try:
            return {id_: self.held[id_] for id_ in reversed([*ids])}
        except KeyError as error:
            raise LookupError("a chunk is gone") from error

    def snapshot(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


def test_a_trace_is_read_whole_with_its_trigger_and_revision() -> None:
    kept, made = Kept(), Composer(2).trace(5)
    due = kept.keep(made)
    found = stored(kept, due.chunks, closing_of(due))
    assert found.trace is not None
    assert (found.trace.trace_id, found.trace.digest) == (made.trace_id.hex(), found.evidence.digest)
    assert (found.trace.trigger, found.trace.revision, found.trace.late_spans) == (Trigger.ROOT_ENDED, 2, 3)
    [(_, parts)] = parts_of(kept, [due])
    assert parts == [kept.held[id_] for id_ in due.chunks], "in order of arrival"
    assert rebuilt(parts, closing_of(due)) == found


def test_small_traces_are_read_together_up_to_the_byte_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, composer = Kept(), Composer(2)
    due = [kept.keep(composer.trace(3)) for _ in range(4)]
    monkeypatch.setattr(stored_traces, "_READ_BYTES", due[0].size + due[1].size)
    found = [*parts_of(kept, due)]
    assert [each for each, _ in found] == due
    assert kept.asked[0] == [*due[0].chunks, *due[1].chunks]
    assert sorted(id_ for asked in kept.asked for id_ in asked) == sorted(kept.held)


def test_an_unreadable_trace_does_not_affect_the_other_traces() -> None:
    kept, composer = Kept(), Composer(2)
    due = [kept.keep(composer.trace(3)) for _ in range(3)]
    del kept.held[due[1].chunks[0]]
    found = Understanding(kept, Evaluator(load("embedded"))).of(due)
    assert [each.failed and each.failed[0] for each in found] == [None, "LookupError", None]


def test_traces_are_not_read_again_one_by_one_if_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    due = [kept.keep(Composer(2).trace(3))]

    def none_left(ids: Collection[int]) -> dict[int, Part]:
        kept.asked.append([*ids])
        raise MemoryError

    monkeypatch.setattr(kept, "chunks", none_left)
    with pytest.raises(MemoryError):
        [*parts_of(kept, due)]
    assert len(kept.asked) == 1


def test_without_a_span_there_is_no_trace() -> None:
    found = rebuilt([])
    assert found.trace is None
    assert not found.evidence.spans
