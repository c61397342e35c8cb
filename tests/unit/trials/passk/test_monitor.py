"""What a running collector learns of results: shown as gauges, kept in the store, and taken up again."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import ResultRow, Store
from pandaeval_collector.trials.passk.live import Monitor
from support.doors import until

ROW = ResultRow("r", "t", "trace.m", 1, b"{}", success=True)


class Counting:
    """Watches one metric: counts its rows."""

    def __init__(self, key: str, metric: str = "trace.m") -> None:
        self.key, self._metric = key, metric
        self.seen = 0

    def take(self, rows: Sequence[ResultRow]) -> bool:
        found = sum(row.metric == self._metric for row in rows)
        self.seen += found
        return found > 0

    def gauges(self) -> Mapping[tuple[str, Attributes], float]:
        return {(f"pandaeval.{self.key}", ()): float(self.seen)}

    def state(self) -> Any:
        return {"seen": self.seen}

    def restore(self, state: Any) -> None:
        self.seen = state["seen"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def shown(telemetry: Telemetry) -> dict[str, float]:
    return {
        each.instrument.name: each.value
        for each in telemetry.measures()
        if each.instrument.name in ("pandaeval.one", "pandaeval.two")
    }


def kept(store: Store) -> dict[str, Any]:
    return {key: json.loads(held) for key in ("one", "two") if (held := store.reads.get(key)) is not None}


async def test_only_what_changed_is_kept_and_all_is_shown(store: Store) -> None:
    telemetry = Telemetry()
    watches = Counting("one"), Counting("two", "trace.other")
    monitor = Monitor(store, telemetry, watches, 60.0)
    monitor.start()
    assert shown(telemetry) == {}
    monitor.take([ROW, ROW])
    monitor.take([])
    await monitor.stop()
    assert kept(store) == {"one": {"seen": 2}}
    assert shown(telemetry) == {"pandaeval.one": 2.0, "pandaeval.two": 0.0}


async def test_where_nothing_came_nothing_is_kept_or_shown(store: Store) -> None:
    telemetry = Telemetry()
    monitor = Monitor(store, telemetry, [Counting("one")], 60.0)
    monitor.start()
    await monitor.stop()
    assert (kept(store), shown(telemetry)) == ({}, {})


async def test_every_interval_what_came_is_shown_and_kept(store: Store) -> None:
    telemetry = Telemetry()
    monitor = Monitor(store, telemetry, [Counting("one")], 0.001)
    monitor.start()
    for number in (1, 2):
        monitor.take([ROW])
        await until(lambda number=number: kept(store) == {"one": {"seen": number}})
        assert shown(telemetry) == {"pandaeval.one": number}
    await monitor.stop()


async def test_what_was_kept_is_shown_before_anything_comes(store: Store) -> None:
    await asyncio.wrap_future(store.put("one", '{"seen": 7}'))
    telemetry = Telemetry()
    monitor = Monitor(store, telemetry, [Counting("one"), Counting("two")], 60.0)
    monitor.start()
    await monitor.stop()
    assert shown(telemetry) == {"pandaeval.one": 7.0, "pandaeval.two": 0.0}


@pytest.mark.parametrize("held", ["no json", "[7]", "7", "{}", '{"seen": null}'])
async def test_one_that_cannot_be_read_begins_anew_and_the_others_go_on(
    store: Store, caplog: pytest.LogCaptureFixture, held: str
) -> None:
    class Checked(Counting):
        def restore(self, state: Any) -> None:
            self.seen = int(state.get("seen", state["seen"]))

    for key, text in (("one", held), ("two", '{"seen": 7}')):
        await asyncio.wrap_future(store.put(key, text))
    telemetry = Telemetry()
    watches = Checked("one"), Checked("two")
    monitor = Monitor(store, telemetry, watches, 60.0)
    monitor.start()
    await monitor.stop()
    assert [each.seen for each in watches] == [0, 7]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("what was kept of one cannot be read (")


def failing(store: Store, errors: list[Exception]) -> Callable[[str, str], Future[None]]:
    """The store's ``put``, which fails with these errors first."""
    put = store.put

    def once(key: str, value: str) -> Future[None]:
        if errors:
            raise errors.pop(0)
        return put(key, value)

    return once


async def test_what_could_not_be_kept_is_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Exception] = [sqlite3.OperationalError("disk I/O error"), OSError("no space left")]
    monkeypatch.setattr(store, "put", failing(store, errors))
    monitor = Monitor(store, Telemetry(), [Counting("one"), Counting("two", "trace.other")], 0.001)
    monitor.start()
    monitor.take([ROW])
    await until(lambda: kept(store) == {"one": {"seen": 1}})
    await monitor.stop()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", f"what trials and streams showed could not be kept ({why}); trying again")
        for why in ("disk I/O error", "no space left")
    ]
    assert kept(store) == {"one": {"seen": 1}}, "and not what did not change"


async def test_what_comes_while_the_store_fails_is_kept_with_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Monitor(store, Telemetry(), [Counting("one"), Counting("two", "trace.other")], 0.001)
    put, other = store.put, replace(ROW, metric="trace.other")

    def once(key: str, value: str) -> Future[None]:
        monkeypatch.setattr(store, "put", put)
        monitor.take([other])
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "put", once)
    monitor.start()
    monitor.take([ROW])
    await until(lambda: kept(store) == {"one": {"seen": 1}, "two": {"seen": 1}})
    await monitor.stop()
