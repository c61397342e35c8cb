"""What scrapes say one after the other, and when the store cannot be read."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import prometheus
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.exporters.prometheus import Scrape
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.series import Point
from support.results import result


class Gone:
    """The series of a store whose files were taken away: a thread that has no connection yet gets none."""

    def pages(self, now: float) -> Iterator[Sequence[Point]]:
        raise sqlite3.OperationalError("unable to open database file")
        yield


async def scraped(scrape: Scrape) -> str:
    _, body = scrape.answer("application/openmetrics-text")
    return b"".join([piece async for piece in body]).decode()


def evaluations(text: str) -> list[float]:
    lines = [line for line in text.splitlines() if line.startswith("pandaeval_evaluations_total{")]
    return [float(line.partition("} ")[2].split()[0]) for line in lines]


async def test_a_zero_that_was_scraped_is_noted_and_the_value_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_NOTE_AFTER_S", 0.0)
    store = Store(tmp_path, "off")
    changes = WriteSet()
    Emitter().add([result()], (), changes)
    store.commit(changes).result()
    scrape = Scrape(Telemetry(), ZeroFirst(store, "scrape", 0.0))
    found = evaluations(await scraped(scrape))
    assert found == [0.0]
    async with asyncio.timeout(120):
        while found == [0.0]:
            found = evaluations(await scraped(scrape))
    assert found == [1.0]
    store.close()


async def test_its_own_numbers_are_told_whole_when_the_store_is_gone() -> None:
    telemetry = Telemetry()
    telemetry.add("pandaeval.store.errors", "gone")
    scrape = Scrape(telemetry, cast(ZeroFirst, Gone()))
    for times in (0, 1):
        text = await scraped(scrape)
        assert 'pandaeval_store_errors_total{pandaeval_outcome="gone"} 1' in text
        assert text.endswith("# EOF\n")
        assert telemetry.total("pandaeval.store.errors", "scrape") == times + 1
