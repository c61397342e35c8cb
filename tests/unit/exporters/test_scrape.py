"""Consecutive scrapes, and an unreadable store."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
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
    """Series of a store whose files were deleted."""

    def pages(self, now: float) -> Iterator[Sequence[Point]]:
        raise sqlite3.OperationalError("unable to open database file")
        yield


class Pages:
    """Counts concurrent page reads."""

    asking = most_at_once = 0

    def pages(self, now: float) -> Iterator[Sequence[Point]]:
        for _ in range(5):
            Pages.asking += 1
            Pages.most_at_once = max(Pages.most_at_once, Pages.asking)
            time.sleep(0.002)  # lets another thread run
            Pages.asking -= 1
            yield []


async def scraped(scrape: Scrape) -> str:
    _, body = scrape.answer("application/openmetrics-text")
    return b"".join([piece async for piece in body]).decode()


def evaluations(text: str) -> list[float]:
    lines = [line for line in text.splitlines() if line.startswith("pandaeval_evaluations_total{")]
    return [float(line.partition("} ")[2].split()[0]) for line in lines]


async def test_a_scraped_zero_is_recorded_and_the_value_follows(
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


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a store with an unseen result."""
    monkeypatch.setattr(prometheus, "_NOTE_AFTER_S", 0.0)
    store = Store(tmp_path, "off")
    changes = WriteSet()
    Emitter().add([result()], (), changes)
    store.commit(changes).result()
    yield store
    store.close()


def zeros(store: Store) -> list[float | None]:
    """Return when scrapers first saw 0."""
    names = ("pandaeval.evaluation.score", "pandaeval.evaluations")
    return [row.shown_at for name in names for row in store.reads.tally.page("scrape", name)]


async def test_a_zero_is_recorded_only_after_the_whole_answer_was_sent(
    counted: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "time", SimpleNamespace(time=lambda: 4e9))
    scrape = Scrape(Telemetry(), ZeroFirst(counted, "scrape", 60.0))
    _, body = scrape.answer("")
    pieces = [await anext(body) for _ in range(3)]
    assert zeros(counted) == [None, None]
    assert not scrape._notes, "the answer is not complete yet"
    pieces += [piece async for piece in body]
    [note] = scrape._notes
    await note
    assert zeros(counted) == [4e9, 4e9]
    await asyncio.sleep(0)
    assert not scrape._notes
    assert evaluations(b"".join(pieces).decode()) == evaluations(await scraped(scrape)) == [0.0]
    assert not scrape._notes, "nothing is new"


async def test_recording_zeros_in_a_closed_store_raises_no_error(counted: Store) -> None:
    scrape = Scrape(Telemetry(), ZeroFirst(counted, "scrape", 0.0))
    await scraped(scrape)
    counted.close()
    [note] = scrape._notes
    await note


async def test_concurrent_scrapes_render_one_page_at_a_time() -> None:
    scrape = Scrape(Telemetry(), cast(ZeroFirst, Pages()))
    found = await asyncio.gather(*(scraped(scrape) for _ in range(4)))
    assert {text.endswith("# EOF\n") for text in found} == {True}
    assert Pages.most_at_once == 1


async def test_a_scrape_without_score_series_shows_the_collectors_own_metrics() -> None:
    telemetry = Telemetry()
    telemetry.add("pandaeval.store.errors", "probe")
    scrape = Scrape(telemetry, None)
    kind, body = scrape.answer("text/plain")
    text = b"".join([piece async for piece in body]).decode()
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert 'pandaeval_store_errors_total{pandaeval_outcome="probe"} 1.0\n' in text
    assert not scrape._notes


async def test_own_metrics_are_scraped_completely_if_the_store_is_unreadable() -> None:
    telemetry = Telemetry()
    telemetry.add("pandaeval.store.errors", "probe")
    scrape = Scrape(telemetry, cast(ZeroFirst, Gone()))
    for times in (0, 1):
        text = await scraped(scrape)
        assert 'pandaeval_store_errors_total{pandaeval_outcome="probe"} 1' in text
        assert text.endswith("# EOF\n")
        assert telemetry.total("pandaeval.store.errors", "scrape") == times + 1
