"""Streamed scrapes for slow, absent and many readers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import prometheus, zero_first
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.exporters.prometheus import Scrape
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.receivers.bind import Address
from pandaeval_collector.receivers.health import Answer, Streaming
from pandaeval_collector.receivers.server import HttpServer
from pandaeval_collector.store import Store, WriteSet
from support.receivers import LOOPBACK, http_client, until
from support.results import result

PIECE = b"x" * (1 << 20)


class Pieces:
    """A streamed answer; counts pieces and early ends."""

    def __init__(self, number: int, gate: asyncio.Event | None = None) -> None:
        self._number, self._gate = number, gate
        self.made = self.begun = self.ended_early = 0

    def __call__(self, accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
        return "text/plain", self._body()

    async def _body(self) -> AsyncGenerator[bytes, None]:
        self.begun += 1
        try:
            for _ in range(self._number):
                if self._gate is not None:
                    await self._gate.wait()
                self.made += 1
                yield PIECE
        except (GeneratorExit, asyncio.CancelledError):
            self.ended_early += 1
            raise


@contextlib.asynccontextmanager
async def served(answer: Answer, longest_s: float = 60.0, at_once: int = 16) -> AsyncIterator[Address]:
    streaming = Streaming(answer, longest_s, at_once)

    async def scrape(request: Request) -> ASGIApp:
        return await streaming(request)

    server = HttpServer(Starlette(routes=[Route("/metrics", scrape)]), LOOPBACK, setting="server.health")
    try:
        yield await server.start()
    finally:
        await server.stop(1)


@contextlib.asynccontextmanager
async def unread(where: Address) -> AsyncIterator[asyncio.StreamReader]:
    """Return a client that does not read."""
    reader, writer = await asyncio.open_connection(where.host, where.port, limit=1024)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
    await writer.drain()
    yield reader
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class TestClients:
    async def test_a_client_that_reads_gets_the_whole_answer(self) -> None:
        pieces = Pieces(5)
        async with served(pieces) as where, http_client(where) as client:
            assert (await client.get("/metrics")).content == 5 * PIECE

    async def test_a_head_request_renders_nothing(self) -> None:
        pieces = Pieces(5)
        async with served(pieces) as where, http_client(where) as client:
            head = await client.head("/metrics")
            assert (head.status_code, head.headers["content-type"], head.content) == (200, "text/plain", b"")
        assert pieces.made == 0

    async def test_a_client_that_does_not_read_is_disconnected_after_few_pieces(self) -> None:
        pieces = Pieces(1000)
        async with served(pieces, longest_s=0.5) as where, unread(where) as reader:
            await until(lambda: pieces.ended_early == 1)
            assert pieces.made < 30, "only the kernel's buffers and one piece may be rendered"
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1000 * len(PIECE))

    async def test_rendering_stops_when_the_client_disconnects(self) -> None:
        gate = asyncio.Event()
        pieces = Pieces(1000, gate)
        async with served(pieces) as where:
            async with unread(where):
                await until(lambda: pieces.begun == 1)
            await asyncio.sleep(0.1)
            gate.set()
            await until(lambda: pieces.ended_early == 1)
        assert pieces.made < 30

    async def test_too_many_simultaneous_scrapes_get_503_with_retry_after(self) -> None:
        gate = asyncio.Event()
        pieces = Pieces(1, gate)
        async with served(pieces, at_once=3) as where, http_client(where) as client:
            asked = [asyncio.create_task(client.get("/metrics")) for _ in range(3)]
            await until(lambda: pieces.begun == 3)
            refused = await client.get("/metrics")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            gate.set()
            assert [(await each).status_code for each in asked] == [200, 200, 200]
            assert (await client.get("/metrics")).status_code == 200


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Store]:
    """Create 600 series in pages of 20."""
    monkeypatch.setattr(zero_first, "PAGE", 20)
    monkeypatch.setattr(prometheus, "_NOTE_AFTER_S", 0.01)

    def make() -> Store:
        store = Store(tmp_path, "off")
        store.commit(more(0, 300)).result()
        return store

    return make


def more(first: int, number: int) -> WriteSet:
    changes = WriteSet()
    made = [result(id=f"r{n}", agent=f"a{n % 100}", service=f"s{n // 100}") for n in range(first, first + number)]
    Emitter().add(made, (), changes)
    return changes


class TestScrape:
    @pytest.mark.slow
    async def test_ten_simultaneous_scrapes_get_all_series_while_results_are_committed(
        self, full: Callable[[], Store]
    ) -> None:
        store = full()
        scrape = Scrape(Telemetry(), ZeroFirst(store, "scrape", 0.0))
        async with served(scrape.answer) as where, http_client(where) as client:
            headers = {"accept": "application/openmetrics-text"}
            asked = [asyncio.create_task(client.get("/metrics", headers=headers)) for _ in range(10)]
            committed = 0
            while not all(each.done() for each in asked):
                await asyncio.wrap_future(store.commit(more(committed % 300, 1)))
                committed += 1
            texts = [(await each).text for each in asked]
        assert committed > 1
        for text in texts:
            series = {family.name: len(family.samples) for family in openmetrics(text)}
            assert series["pandaeval_evaluations"] == 300
            assert series["pandaeval_evaluation_score"] == 300 * 15
        store.close()

    async def test_a_zero_counts_as_shown_only_after_a_complete_scrape(self, full: Callable[[], Store]) -> None:
        store = full()

        def noted() -> int:
            return sum(row.shown_at is not None for row in store.reads.tally.page("scrape", "pandaeval.evaluations"))

        scrape = Scrape(Telemetry(), ZeroFirst(store, "scrape", 0.0))
        _, body = scrape.answer("")
        async with contextlib.aclosing(body):
            [await anext(body) for _ in range(5)]
        await asyncio.sleep(0.1)
        assert noted() == 0, "the client left early"
        _, body = scrape.answer("")
        assert b"".join([piece async for piece in body])
        await until(lambda: noted() == 300)
        store.close()
