"""Order, batching, duplicates and delays do not change the final evidence."""

from __future__ import annotations

import random

from hypothesis import given, settings, strategies as st

from pandaeval_otel.assembly import CloseRules, Decided, TraceAssembler
from pandaeval_otel.model import Trigger
from pandaeval_otel.wire.fragments import Item
from support.examples import examples

RULES = CloseRules(reopen_delays=(5.0, 30.0, 180.0, 180.0, 180.0))


def _items(count: int) -> list[Item]:
    """Return a root with a chain or fan of children."""
    ids = [bytes([0] * 7 + [n + 1]) for n in range(count)]
    return [Item(ids[0])] + [Item(ids[n], ids[(n - 1) // 2]) for n in range(1, count)]


@st.composite
def deliveries(draw: st.DrawFn) -> list[tuple[float, list[Item]]]:
    """Return shuffled items in batches, with pauses."""
    items = _items(draw(st.integers(1, 12)))
    again = draw(st.lists(st.sampled_from(items), max_size=6))
    sent = [*items, *again]
    random.Random(draw(st.integers(0, 2**32))).shuffle(sent)
    batches: list[tuple[float, list[Item]]] = []
    long_pauses = 0
    while sent:
        size = draw(st.integers(1, len(sent)))
        batch, sent = sent[:size], sent[size:]
        pause = draw(st.floats(0, 12))
        if long_pauses < 4 and draw(st.booleans()):
            pause, long_pauses = 400.0, long_pauses + 1
        batches.append((pause, batch))
    return batches


@settings(max_examples=examples(300))
@given(deliveries())
def test_the_final_revision_holds_every_span_once(batches: list[tuple[float, list[Item]]]) -> None:
    trace_id = bytes(15) + b"\x01"
    traces = TraceAssembler(RULES)
    now, memory, revisions = 0.0, None, []
    stored = duplicate = late = 0

    def decide() -> None:
        nonlocal memory
        for due in traces.take_due(now):
            assert due.trigger in (Trigger.ROOT_ENDED, Trigger.IDLE)
            memory = Decided(due.revision, due.known, due.chunks, due.size)
            traces.decided(trace_id)
            revisions.append(due)

    for chunk, (pause, batch) in enumerate(batches):
        for _ in range(20):
            now += pause / 20
            decide()
        added = traces.add(trace_id, batch, chunk, 1, now, None if traces.knows(trace_id) else memory)
        stored, duplicate, late = stored + added.stored, duplicate + added.duplicate, late + added.late
    for _ in range(8):
        now += 200
        decide()
    assert len(traces) == traces.held_bytes == 0
    assert late == 0
    every = {item.id for _, batch in batches for item in batch}
    assert revisions[-1].known == every
    assert [due.revision for due in revisions] == list(range(1, len(revisions) + 1))
    assert stored + duplicate == sum(len(batch) for _, batch in batches)
    assert stored == len(every)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300), st.floats(0, 50)), max_size=60))
def test_every_span_is_decided_or_late_or_a_duplicate(events: list[tuple[int, int, float]]) -> None:
    """Uses tiny limits."""
    traces = TraceAssembler(CloseRules(max_spans=4, reopen_delays=(5.0,)))
    memory: dict[bytes, Decided] = {}
    now = 0.0
    sent = taken = 0

    def decide() -> None:
        nonlocal taken
        for due in traces.take_due(now):
            before = memory.get(due.trace_id)
            taken += len(due.known) - (len(before.known) if before else 0)
            memory[due.trace_id] = Decided(due.revision, due.known, due.chunks, due.size, due.capped)
            traces.decided(due.trace_id)

    other = 0
    for chunk, (trace, number, pause) in enumerate(events):
        now += pause
        decide()
        trace_id = bytes(15) + bytes([trace + 1])
        known = None if traces.knows(trace_id) else memory.get(trace_id)
        added = traces.add(trace_id, [Item(number.to_bytes(8, "big"))], chunk, 1, now, known)
        sent += 1
        other += added.duplicate + added.late
        held = [*traces._open.values(), *traces._deciding.values()]
        assert traces.held_bytes == 1000 * len(held) + 130 * sum(len(each.known) for each in held)
    for _ in range(4):
        now += 2000
        decide()
    assert len(traces) == traces.deciding == traces.held_bytes == 0
    assert sent == taken + other
