"""Log offsets commit with their spans."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import Chunk, Consumed, DecidedTrace, Extent, JobRow, Store, WriteSet

T1, T2 = (bytes(15) + bytes([number]) for number in (1, 2))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, durability="off")
    store.consumed.open("cluster/topic/group").result()
    yield store
    store.close()


def _chunk(store: Store, trace_id: bytes, id_: int | None = None) -> Chunk:
    return Chunk(store.next_chunk_id() if id_ is None else id_, trace_id, False, 1, 0, b"spans")


def test_spans_and_read_position_are_committed_together(store: Store) -> None:
    chunk = _chunk(store, T1)
    store.append([chunk], read=[Consumed(3, 5, 2, {T1: Extent(4, 4)})]).result()
    assert store.consumed.load() == {3: Consumed(3, 5, 2, {T1: Extent(4, 4)})}
    with pytest.raises(sqlite3.IntegrityError):
        store.append([_chunk(store, T2, chunk.id)], read=[Consumed(3, 9)]).result()
    assert store.consumed.load()[3].next == 5


def test_read_positions_are_deleted_if_the_log_changes(store: Store) -> None:
    store.consumed.note([Consumed(0, 7, 1, {T1: Extent(6, 6)})]).result()
    store.consumed.open("cluster/topic/group").result()
    assert store.consumed.load()[0].next == 7
    store.consumed.open("another cluster/topic/group").result()
    assert store.consumed.load() == {}


def test_extents_below_an_offset_are_forgotten(store: Store) -> None:
    store.consumed.note([Consumed(0, 9, 0, {T1: Extent(1, 3), T2: Extent(2, 8)})]).result()
    store.consumed.forget(0, 4).result()
    assert store.consumed.load()[0].extents == {T2: Extent(2, 8)}


def test_a_released_partition_keeps_the_extents_of_kept_traces(store: Store) -> None:
    store.consumed.note([Consumed(0, 9, 0, {T1: Extent(1, 3), T2: Extent(2, 8)}), Consumed(1, 4)]).result()
    store.consumed.release(0, {T2}).result()
    assert store.consumed.load() == {0: Consumed(0, -1, 0, {T2: Extent(2, 8)}), 1: Consumed(1, 4)}


def test_parked_jobs_are_not_leased_until_they_are_unparked(store: Store) -> None:
    rows = [DecidedTrace(trace_id, 1, False, "", frozenset({b"12345678"}), (), 0) for trace_id in (T1, T2)]
    jobs = [JobRow("job 1", T1, "trace.x", 0.0, b"{}"), JobRow("job 2", T2, "trace.x", 0.0, b"{}")]
    store.commit(WriteSet(traces=rows, jobs=jobs)).result()
    assert store.consumed.unjudged() == {T1, T2}
    assert store.consumed.park({T1, T2}).result() == 2
    assert store.jobs.lease(store.clock.running() + 1, 10).result() == []
    assert store.consumed.give_up({T1}, 1.0).result() == 1
    assert store.consumed.unpark({T1, T2}).result() == 1
    assert [job.id for job in store.jobs.lease(store.clock.running() + 1, 10).result()] == ["job 2"]
    assert store.jobs.counts() == {"cancelled": 1, "leased": 1}
