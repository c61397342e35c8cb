"""Deletion and compression under load."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.pipeline.upkeep import Upkeep
from pandaeval_collector.store import ResultRow, Store, WriteSet
from pandaeval_collector.store.deleting import LOG

_DAY = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, "off")


def _upkeep(store: Store, keeps_content: bool = True) -> Upkeep:
    return Upkeep(store, Timing(keeps_content=keeps_content), Telemetry(), frozenset)


def _results(store: Store) -> int:
    return len(store.reads.results_after(0, 10_000))


def _file(store: Store, number: int) -> None:
    rows = [ResultRow(f"r{each}", "s", "session.agent_consistency", 1, b"{}") for each in range(number)]
    store.commit(WriteSet(results=rows)).result()


async def test_old_rows_are_deleted_while_compression_continues(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(store, 3)
    now = store.clock.calendar()
    monkeypatch.setattr(store.clock, "calendar", lambda: now + 8 * _DAY)
    upkeep, left = _upkeep(store), list[int]()

    def never_done(window: float, now: float, keep: Collection[bytes], limit: int) -> int:
        left.append(_results(store))
        return limit if len(left) < 4 else 0

    monkeypatch.setattr(store.kept, "keep", never_done)
    await upkeep.run()
    assert left == [3, 0, 0, 0]
    store.close()


@pytest.mark.parametrize(("fill", "compresses"), [(0.2, True), (0.89, True), (0.91, False), (2.0, False)])
async def test_nothing_is_compressed_if_the_store_is_nearly_full(
    store: Store, monkeypatch: pytest.MonkeyPatch, fill: float, compresses: bool
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(store, "size_bytes", lambda: int(store.max_bytes * fill))
    monkeypatch.setattr(store.kept, "keep", lambda window, *_: asked.append(window) or 0)
    await _upkeep(store).run()
    assert asked == ([600.0] if compresses else [])
    store.close()


async def test_nothing_is_compressed_if_contents_are_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.kept, "keep", lambda *_: pytest.fail("compressed"))
    await _upkeep(store, keeps_content=False).run()
    store.close()


async def test_a_deletion_that_cannot_be_logged_is_completed_later_and_blocks_no_retention(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _file(store, 3)
    now = store.clock.calendar()
    monkeypatch.setattr(store.clock, "calendar", lambda: now + 8 * _DAY)
    (store.path / LOG).mkdir()  # as unwritable as on a full disk
    store.deletions.begin("user", "ann", "test").result()
    upkeep = _upkeep(store)
    await upkeep.run()
    assert _results(store) == 0, "old results were still deleted"
    assert store.deletions.pending()
    (store.path / LOG).rmdir()
    await upkeep.run()
    assert not store.deletions.pending()
    assert (store.path / LOG).read_text().count("\n") == 1
    store.close()
