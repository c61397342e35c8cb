"""What a scrape says when the store cannot be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import cast

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters.prometheus import Scrape
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.store.series import Point


class Gone:
    """The series of a store whose files were taken away: a thread that has no connection yet gets none."""

    def pages(self, now: float) -> Iterator[Sequence[Point]]:
        raise sqlite3.OperationalError("unable to open database file")
        yield


async def test_its_own_numbers_are_told_whole_when_the_store_is_gone() -> None:
    telemetry = Telemetry()
    telemetry.add("pandaeval.store.errors", "gone")
    scrape = Scrape(telemetry, cast(ZeroFirst, Gone()))
    for times in (0, 1):
        _, body = scrape.answer("application/openmetrics-text")
        text = b"".join([piece async for piece in body]).decode()
        assert 'pandaeval_store_errors_total{pandaeval_outcome="gone"} 1' in text
        assert text.endswith("# EOF\n")
        assert telemetry.total("pandaeval.store.errors", "scrape") == times + 1
