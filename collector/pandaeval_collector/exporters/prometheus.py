"""Series for Prometheus to scrape, some at a time: OpenMetrics with exemplars for those who ask for it, else the
classic text."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence

from pandaeval_collector.base.section import Section
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._text import ScrapeText, content_type
from pandaeval_collector.exporters.zero_first import ZeroFirst, new_ones, own_points

_NOTE_AFTER_S = 1.0


class Prometheus(Section):
    """The scrape endpoint on the health listener."""

    enabled: bool = True
    """Whether /metrics is served."""
    results: bool | None = None
    """Whether scores are scraped too; null: only when no OTLP metrics endpoint is set, so that they are not counted
    twice."""


SETTINGS = Prometheus


class Scrape:
    """Answers scrapes with the collector's own numbers and, given ``series``, with the scores. However many scrapes
    there are at a time, one page is rendered at a time, on a thread of its own. Scores that cannot be read from the
    store are left out of an answer, and counted; the collector's own numbers are always in it."""

    def __init__(self, telemetry: Telemetry, series: ZeroFirst | None) -> None:
        self._telemetry, self._series = telemetry, series
        self._turn = asyncio.Lock()
        self._notes: set[asyncio.Task[None]] = set()

    def answer(self, accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
        """Returns content type and body that fit the ``accept`` header of the request."""
        kind, openmetrics = content_type(accept)
        return kind, self._body(ScrapeText(openmetrics))

    async def _body(self, text: ScrapeText) -> AsyncGenerator[bytes, None]:
        now = time.time()
        new: list[str] = []
        yield text.render(own_points(self._telemetry))
        if self._series is not None:
            pages = self._series.pages(now)

            def render() -> bytes | None:
                points = next(pages, None)
                if points is not None:
                    new.extend(new_ones(points))
                return None if points is None else text.render(points)

            try:
                while True:
                    async with self._turn:
                        page = await asyncio.to_thread(render)
                    if page is None:
                        break
                    yield page
            except sqlite3.Error:  # a store that cannot be read must not hide the numbers that say so
                self._telemetry.add("pandaeval.store.errors", "scrape")
        yield text.end()
        if self._series is not None and new:
            # Not before the answer is out: a zero that was noted and never seen would be no zero.
            note = asyncio.create_task(self._note(self._series, new, now))
            self._notes.add(note)
            note.add_done_callback(self._notes.discard)

    async def _note(self, series: ZeroFirst, keys: Sequence[str], now: float) -> None:
        await asyncio.sleep(_NOTE_AFTER_S)
        with contextlib.suppress(RuntimeError):  # the store is closed: the zeros are shown again by the next process
            await series.shown(keys, now)
