"""Completion rules of traces, and late spans."""

from __future__ import annotations

import pytest

from pandaeval_otel.assembly import CloseRules, Decided, TraceAssembler
from pandaeval_otel.model import Trigger
from pandaeval_otel.wire.fragments import Item

T = bytes(15) + b"\x01"
RULES = CloseRules(quiet=10, idle=180, max_age=1800, fragment_quiet=30, max_spans=5, max_bytes=1000)


def span(number: int, parent: int | None = None, remote: bool = False) -> Item:
    return Item(bytes(7) + bytes([number]), b"" if parent is None else bytes(7) + bytes([parent]), remote)


def log(text: bytes) -> Item:
    return Item(b"L" + text.ljust(8, b"."))


@pytest.fixture
def traces() -> TraceAssembler:
    return TraceAssembler(RULES)


def test_a_trace_closes_when_its_root_ended_and_it_was_quiet(traces: TraceAssembler) -> None:
    traces.add(T, [span(2, 1)], 1, 10, now=0)
    traces.add(T, [span(1)], 2, 10, now=5)
    assert traces.take_due(14.9) == []
    [due] = traces.take_due(15)
    assert (due.trigger, due.complete, due.chunks, due.spans) == (Trigger.ROOT_ENDED, True, (1, 2), 2)


def test_a_trace_stays_open_while_a_span_waits_for_its_local_parent(traces: TraceAssembler) -> None:
    traces.add(T, [span(1), span(3, 2)], 1, 10, now=0)
    assert traces.take_due(100) == []
    traces.add(T, [span(2, 1)], 2, 10, now=100)
    assert traces.take_due(109) == []
    assert [due.trigger for due in traces.take_due(110)] == [Trigger.ROOT_ENDED]


def test_idle_time_counts_from_the_last_span(traces: TraceAssembler) -> None:
    for now in (0, 170, 340):
        traces.add(T, [span(now // 100 + 2, 1)], now, 10, now=now)
    assert traces.take_due(519) == []
    [due] = traces.take_due(520)
    assert (due.trigger, due.complete) == (Trigger.IDLE, False)


def test_a_trace_never_stays_open_longer_than_max_age() -> None:
    traces = TraceAssembler(CloseRules(quiet=10, idle=180, max_age=400))
    for number, now in enumerate(range(0, 400, 100)):
        traces.add(T, [span(number + 2, 1)], number, 10, now=now)
    assert [due.trigger for due in traces.take_due(400)] == [Trigger.MAX_AGE]


def test_the_application_may_close_a_trace_itself(traces: TraceAssembler) -> None:
    traces.add(T, [span(1)], 1, 10, now=0)
    traces.close(T)
    assert [due.trigger for due in traces.take_due(0.1)] == [Trigger.EXPLICIT]


def test_a_trace_whose_top_span_has_a_remote_parent_is_a_fragment(traces: TraceAssembler) -> None:
    traces.add(T, [span(2, 1, remote=True), span(3, 2)], 1, 10, now=0)
    assert traces.take_due(29) == []
    [due] = traces.take_due(30)
    assert due.fragment
    assert not due.complete


@pytest.mark.parametrize(
    ("items", "size", "trigger"),
    [([span(n) for n in range(1, 6)], 10, Trigger.SPAN_LIMIT), ([span(1)], 1000, Trigger.MEMORY)],
)
def test_a_trace_over_a_limit_closes_at_once_and_is_not_reopened(
    items: list[Item], size: int, trigger: Trigger
) -> None:
    traces = TraceAssembler(RULES)
    traces.add(T, items, 1, size, now=0)
    [due] = traces.take_due(0)
    assert (due.trigger, due.capped) == (trigger, True)
    late = traces.add(T, [span(9)], 2, 10, now=1)
    assert (late.late, late.reopened, len(traces)) == (1, False, 0)


def test_the_size_of_a_batch_is_limited_by_bytes(traces: TraceAssembler) -> None:
    ids = [bytes([number]) * 16 for number in range(6)]
    for id_ in ids:
        traces.add(id_, [span(1)], 1, 40, now=0)
    assert [len(traces.take_due(1000, most_bytes=100)) for _ in range(3)] == [3, 3, 0]
    for id_ in ids:
        traces.decided(id_)
        traces.add(id_, [span(1)], 2, 400, now=2000)
    assert [len(traces.take_all(Trigger.SHUTDOWN, most_bytes=100)) for _ in range(2)] == [1, 1], (
        "a large trace forms its own batch"
    )


def test_duplicate_spans_do_not_reset_the_timer(traces: TraceAssembler) -> None:
    traces.add(T, [span(1)], 1, 10, now=0)
    added = traces.add(T, [span(1)], 2, 10, now=9)
    assert (added.stored, added.duplicate) == (0, 1)
    assert len(traces.take_due(10)) == 1


def test_only_new_span_ids_reopen_a_decided_trace(traces: TraceAssembler) -> None:
    decided = Decided(revision=1, known=frozenset({span(1).id}), chunks=(1,), size=10)
    assert traces.add(T, [span(1)], 2, 10, now=0, decided=decided).duplicate == 1
    assert len(traces) == 0
    added = traces.add(T, [span(2, 1)], 3, 10, now=0, decided=decided)
    assert added.reopened
    assert traces.take_due(4.9) == []
    [due] = traces.take_due(5)
    assert (due.revision, due.late_spans, due.chunks) == (2, 1, (1, 3))


def test_a_late_log_record_reopens_a_decided_trace(traces: TraceAssembler) -> None:
    decided = Decided(revision=1, known=frozenset({span(1).id}), chunks=(1,), size=10)
    assert traces.add(T, [log(b"a")], 2, 10, now=0, decided=decided).reopened


@pytest.mark.parametrize(("revision", "delay"), [(1, 5), (2, 30), (3, 180), (5, 180)])
def test_each_reopening_waits_longer(revision: int, delay: float) -> None:
    traces = TraceAssembler(CloseRules())
    traces.add(T, [span(2, 1)], 1, 10, now=0, decided=Decided(revision, frozenset({span(1).id})))
    assert traces.take_due(delay - 0.1) == []
    assert len(traces.take_due(delay)) == 1


def test_after_five_reopenings_late_spans_are_only_counted() -> None:
    traces = TraceAssembler(CloseRules())
    added = traces.add(T, [span(2, 1)], 1, 10, now=0, decided=Decided(6, frozenset({span(1).id})))
    assert (added.late, added.reopened) == (1, False)


def test_a_span_that_arrives_during_the_decision_starts_the_next_revision(traces: TraceAssembler) -> None:
    traces.add(T, [span(1)], 1, 10, now=0)
    traces.take_due(10)
    assert traces.add(T, [span(2, 1)], 2, 10, now=11).reopened
    assert traces.take_due(16) == [], "not before the first decision is stored"
    traces.decided(T)
    [due] = traces.take_due(17)
    assert (due.revision, due.spans) == (2, 2)


def test_memory_is_freed_when_traces_are_decided_or_forgotten(traces: TraceAssembler) -> None:
    traces.add(T, [span(1), span(1)], 1, 10, now=0)
    one = traces.held_bytes
    traces.add(bytes(16), [span(1), span(2, 1)], 2, 10, now=0)
    both = traces.held_bytes
    assert 0 < one < both
    assert traces.forget(bytes(16)) == (2, (2,))
    assert traces.held_bytes == one
    traces.take_due(10)
    assert traces.held_bytes == one, "memory is held until the decision"
    traces.decided(T)
    assert traces.held_bytes == 0


def test_log_records_alone_wait_for_their_spans(traces: TraceAssembler) -> None:
    traces.add(T, [log(b"a")], 1, 10, now=0)
    assert traces.take_due(179) == []
    [due] = traces.take_due(180)
    assert (due.spans, due.fragment) == (0, False)
