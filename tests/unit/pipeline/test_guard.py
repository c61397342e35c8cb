"""The store's guard reports failure and recovery."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

import pandaeval_collector.pipeline.upkeep as guard_module
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.upkeep import Guard
from pandaeval_collector.store import Store
from support.disk import failing_disk


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    return failing_disk(monkeypatch)


@pytest.fixture
def store(failures: dict[str, int], tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data", "off")
    yield made
    made.close()


class Guarded:
    def __init__(self, store: Store) -> None:
        self.telemetry = Telemetry()
        self.guard = Guard(store, self.telemetry)

    def counted(self, outcome: str) -> int:
        return self.telemetry.total("pandaeval.store.errors", outcome)


@pytest.fixture
async def guarded(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guarded]:
    monkeypatch.setattr(guard_module, "_LOOK_S", 0.01)
    made = Guarded(store)
    guarding = made.guard.start()
    yield made
    await guarding.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens on other threads
            await asyncio.sleep(0.005)


async def test_a_failing_disk_is_reported_until_it_is_writable_again(
    store: Store, guarded: Guarded, failures: dict[str, int]
) -> None:
    assert guarded.guard.trouble == ""
    failures["COMMIT"] = 1_000_000
    with pytest.raises(sqlite3.OperationalError):
        await asyncio.wrap_future(store.put("a", "b"))
    assert guarded.guard.trouble == "the store cannot be written to: disk I/O error"
    await until(lambda: guarded.counted("probe") >= 2)
    assert guarded.guard.trouble
    failures["COMMIT"] = 0
    await until(lambda: not guarded.guard.trouble)  # even if there are no other writes
