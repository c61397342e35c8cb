"""The partition ledger across owners."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from pandaeval_collector.kafka.partitions import PartitionClaim, PartitionLedger, SessionLedger
from pandaeval_collector.store import Consumed

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def _read(log: list[bytes], upto: int) -> PartitionLedger:
    ledger = PartitionLedger(Consumed(0, 0))
    for offset, trace_id in enumerate(log[:upto]):
        ledger.takes(trace_id, offset)
        ledger.passed(offset)
    return ledger


def test_an_open_trace_holds_back_the_mark() -> None:
    ledger = _read([A, B, A, C], 4)
    mark = ledger.mark(lambda trace_id: trace_id != B)
    assert mark is not None
    assert mark.settled == 1
    assert mark.replay == 0, "A is done but has spans after the mark: the next owner must replay A to know this"


def test_the_mark_passes_traces_that_are_done() -> None:
    ledger = _read([A, B, A, C], 4)
    mark = ledger.mark(lambda _: True)
    assert mark is not None
    assert (mark.settled, mark.replay) == (4, 4)
    ledger.forget(4)
    assert list(ledger.traces) == []


def test_a_mark_never_goes_back() -> None:
    """A late span reopens an old trace."""
    ledger = _read([A, B], 2)
    assert ledger.mark(lambda _: True)
    ledger.takes(A, 2)
    ledger.passed(2)
    mark = ledger.mark(lambda trace_id: trace_id != A)
    assert mark is not None
    assert mark.settled == 2


def test_a_new_owner_gives_no_mark_before_it_has_replayed_earlier_offsets() -> None:
    ledger = PartitionLedger(Consumed(0, 3, settled_below=5))
    assert ledger.mark(lambda _: True) is None
    for offset in (3, 4):
        assert not ledger.takes(A, offset)
        ledger.passed(offset)
    assert not ledger.takes(A, 5), "decided by the previous owner, also after the mark"
    assert ledger.takes(B, 6)
    ledger.passed(6)
    assert ledger.mark(lambda _: True) is not None


def test_a_done_session_may_continue() -> None:
    ledger = SessionLedger(Consumed(0, 3, settled_below=5))
    assert not ledger.takes(A, 3)
    assert not ledger.takes(B, 4)
    ledger.passed(4)
    assert list(ledger.traces) == [], "every session read so far is done"
    assert ledger.takes(A, 5)
    ledger.passed(5)
    assert list(ledger.traces) == [A]
    held = ledger.mark(lambda session: session != A)
    assert held is not None
    assert (held.settled, held.replay) == (5, 3), "the next owner also needs the session's older members"
    done = ledger.mark(lambda _: True)
    assert done is not None
    assert (done.settled, done.replay) == (6, 6)


def test_changes_are_reported_to_the_store_once() -> None:
    ledger = _read([A, B], 2)
    assert ledger.news().extents.keys() == {A, B}
    assert not ledger.has_news
    ledger.takes(A, 2)
    ledger.passed(2)
    news = ledger.news()
    assert (news.next, news.extents.keys()) == (3, {A})


def test_a_claim_is_read_back() -> None:
    claim = PartitionClaim(7, 12, "8f0e-store", 15)
    assert PartitionClaim.of(7, claim.text) == claim
    assert PartitionClaim.of(7, "8f0e-store 12") == PartitionClaim(7, 12, "8f0e-store"), "as earlier versions wrote it"
    assert PartitionClaim.of(7, None) == PartitionClaim(7, 7, ""), "set manually: all before it counts as done"
    assert PartitionClaim.of(-1001, "") == PartitionClaim(-1, 0, "")


@given(
    log=st.lists(st.integers(0, 7), max_size=40),
    cuts=st.lists(st.tuples(st.integers(0, 40), st.sets(st.integers(0, 7))), min_size=1, max_size=4),
)
@example(log=[*[0] * 12, 1, 1], cuts=[(14, {0}), (13, set())])  # the second owner decides 1 after fewer messages
@example(log=[0, 1, 0], cuts=[(3, {1}), (1, set())])  # the second owner stops before the end of the first's reading
def test_any_chain_of_owners_reads_each_open_trace_completely(log: list[int], cuts: list[tuple[int, set[int]]]) -> None:
    """Owners stop anywhere and leave open traces."""
    traces = [bytes([number]) * 16 for number in log]
    claim, done = (0, 0, 0), dict[bytes, int]()
    for upto, open_numbers in [*cuts, (len(log), set())]:
        begin, settled, until = claim
        ledger = PartitionLedger(Consumed(0, begin, settled), until)
        taken: dict[bytes, list[int]] = {}
        for offset in range(begin, max(begin, min(upto, len(traces)))):
            if ledger.takes(traces[offset], offset):
                taken.setdefault(traces[offset], []).append(offset)
            ledger.passed(offset)
        for trace_id, offsets in taken.items():
            before = [offset for offset, other in enumerate(traces[: ledger.next]) if other == trace_id]
            assert offsets == before or offsets[0] >= done.get(trace_id, len(log)), "only part of the trace was taken"
        still_open = {bytes([number]) * 16 for number in open_numbers} & taken.keys()
        mark = ledger.mark(lambda trace_id: trace_id not in still_open)  # noqa: B023 - used at once
        if mark is not None:
            done |= {t: min(done.get(t, ledger.next), ledger.next) for t in taken.keys() - still_open}
            claim = mark.replay, mark.settled, mark.read
    assert all(trace_id in done for trace_id in traces)
