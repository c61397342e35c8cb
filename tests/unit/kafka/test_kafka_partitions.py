"""Owned partitions, and partitions owned before a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.kafka.partitions import PartitionClaim, Partitions
from pandaeval_collector.store import Consumed, Extent, Store

ID = bytes(16)


class NothingToSend:
    def newest(self) -> dict[str, int]:
        return {}

    def have_sent(self, upto: dict[str, int]) -> bool:
        return True


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, durability="off")
    store.consumed.open("cluster/topic/group").result()
    yield store
    store.close()


def test_only_partitions_taken_by_this_process_count_as_released(store: Store) -> None:
    store.consumed.note([Consumed(3, 5, 0, {ID: Extent(4, 4)})]).result()
    telemetry = Telemetry()
    partitions = Partitions("me", store.consumed, NothingToSend(), telemetry)
    partitions.load()
    partitions.take_over(1, PartitionClaim.of(None, None), low=0, high=0)
    for each in (*partitions.not_owned(), 1):
        partitions.release(each, ())
    assert telemetry.total("pandaeval.log.partitions", "taken") == 1
    assert telemetry.total("pandaeval.log.partitions", "released") == 1


def test_loading_again_releases_all_partitions(store: Store) -> None:
    telemetry = Telemetry()
    partitions = Partitions("me", store.consumed, NothingToSend(), telemetry)
    for _ in range(2):
        partitions.load()
        partitions.take_over(1, PartitionClaim.of(None, None), low=0, high=0)
    assert telemetry.total("pandaeval.log.partitions", "taken") == 2
    assert telemetry.total("pandaeval.log.partitions", "released") == 1


@pytest.fixture
def partitions(store: Store) -> Partitions:
    """Return one partition, read to offset 5."""
    partitions = Partitions("me", store.consumed, NothingToSend(), Telemetry())
    partitions.load()
    partitions.take_over(1, PartitionClaim.of(None, None), low=0, high=5)
    _read(partitions, 5)
    assert partitions.at_end(1, 5)
    assert partitions.caught_up
    return partitions


def test_an_outdated_end_of_partition_is_ignored(partitions: Partitions) -> None:
    partitions.ends(1, 8)
    assert not partitions.at_end(1, 5)
    assert not partitions.caught_up
    _read(partitions, 8)
    assert partitions.caught_up


def test_an_end_after_a_hidden_record_counts_as_reached(partitions: Partitions) -> None:
    """A transaction ends with a hidden record."""
    assert partitions.at_end(1, 6)
    partitions.ends(1, 6)
    assert partitions.caught_up
    partitions.ends(1, 8)
    assert not partitions.caught_up
    assert partitions.at_end(1, 8)
    assert partitions.caught_up


def test_a_partition_taken_over_again_is_read_to_its_end_again(partitions: Partitions) -> None:
    partitions.release(1, ())
    partitions.take_over(1, PartitionClaim.of(2, None), low=0, high=5)
    assert not partitions.caught_up
    _read(partitions, 5)
    assert partitions.caught_up


def test_a_truncated_log_ends_at_the_earlier_offset(partitions: Partitions) -> None:
    assert not partitions.at_end(1, 3)
    partitions.ends(1, 3)
    assert partitions.caught_up
    assert partitions.at_end(1, 3)


def _read(partitions: Partitions, end: int) -> None:
    partitions.snapshot()[1].passed(end - 1)
    partitions.stored()
