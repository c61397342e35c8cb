"""Result watchers: limits, slow readers, durable cursors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import orjson
import pytest

from pandaeval_collector.receivers import own_grpc
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address
from pandaeval_collector.receivers.own_grpc import ResultsHandler
from pandaeval_otel import watch_results
from pandaeval_otel._proto.result_service_pb2 import WatchResultsRequest, WatchResultsResponse
from pandaeval_otel.processor.connection import retry_after_s
from support.agents import run_agent
from support.collector import CollectorProcess
from support.processors import Recording, processor, provider, until as patiently
from support.receivers import CountingTelemetry, RecordingIngest, grpc_receiver, until

ROWS, BODY = 20_000, 2_000
WINDOW = 8 << 20
"""More than HTTP/2 and gRPC buffer for an unread stream."""


class Results:
    """A :class:`ResultSource`; ``read``: requested results."""

    def __init__(self, rows: int) -> None:
        self.rows, self.read, self.largest = rows, 0, 0
        self.closing = False
        self._change = asyncio.Event()

    def add(self, rows: int) -> None:
        self.rows += rows
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def changed(self) -> AsyncIterator[None]:
        while not self.closing:
            change = self._change
            yield
            await change.wait()

    async def newest(self) -> int:
        return self.rows

    async def after(self, cursor: int, limit: int) -> Sequence[tuple[int, bytes]]:
        last = min(self.rows, cursor + limit)
        self.read += last - cursor
        self.largest = max(self.largest, last - cursor)
        return [(number, _result(number)) for number in range(cursor + 1, last + 1)]


def _result(number: int) -> bytes:
    return orjson.dumps(
        {"metric": "coherence", "level": "trace", "session_id": "s", "trace_id": "t", "agent": "a", "number": number}
        | {"reason": "x" * BODY}
    )


@contextlib.asynccontextmanager
async def watching(where: Address) -> AsyncIterator[Any]:
    """Yield a function that opens streams."""
    async with grpc.aio.insecure_channel(str(where)) as channel:
        yield channel.unary_stream(
            "/pandaeval.v1.ResultService/WatchResults",
            WatchResultsRequest.SerializeToString,
            WatchResultsResponse.FromString,
        )


async def test_a_watcher_over_the_limit_is_refused_and_can_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_grpc, "MAX_WATCHERS", 2)
    source, telemetry = Results(1), CountingTelemetry()
    handler = ResultsHandler(source, DoorSettings(Admission(1), telemetry=telemetry)).handler
    async with grpc_receiver(RecordingIngest(), handlers=[handler]) as where, watching(where) as watch:
        first, second = watch(WatchResultsRequest()), watch(WatchResultsRequest())
        assert [(await call.read()).cursor for call in (first, second)] == [1, 1]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await watch(WatchResultsRequest()).read()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2 watchers already" in (refused.value.details() or "")
        assert retry_after_s(refused.value.trailing_metadata()) == 1.0
        assert telemetry.requests == {("results", "accepted"): 2, ("results", "overloaded"): 1}
        first.cancel()
        # A retrying watcher gets the free place.
        async for found in watch_results(endpoint=str(where)):
            assert found["number"] == found["cursor"] == 1
            break
        second.cancel()


@pytest.mark.slow
async def test_a_watcher_that_does_not_read_blocks_no_other_watcher_and_limits_read_ahead() -> None:
    source = Results(ROWS)
    async with (
        grpc_receiver(
            RecordingIngest(), handlers=[ResultsHandler(source, DoorSettings(Admission(1))).handler]
        ) as where,
        watching(where) as watch,
        watching(where) as watch_too,
    ):
        slow = watch(WatchResultsRequest())
        assert (await slow.read()).cursor == 1
        quick = watch_too(WatchResultsRequest(after=-1))
        quick_reads = asyncio.create_task(quick.read())
        await asyncio.sleep(0)
        while not quick_reads.done():  # it may subscribe after a result was added
            source.add(1)
            await asyncio.wait({quick_reads}, timeout=0.05)
        assert (await quick_reads).cursor > ROWS
        assert source.read * BODY < WINDOW < ROWS * BODY
        assert source.largest <= own_grpc._PAGE
        last = source.rows
        cursors = [1]
        while cursors[-1] < last:
            cursors.append((await slow.read()).cursor)
        assert cursors == list(range(1, last + 1))
        slow.cancel()
        quick.cancel()


async def test_watchers_get_unavailable_when_the_collector_stops_and_can_resume_at_their_cursor() -> None:
    source = Results(3)
    async with (
        grpc_receiver(
            RecordingIngest(), handlers=[ResultsHandler(source, DoorSettings(Admission(1))).handler]
        ) as where,
        watching(where) as watch,
    ):
        call = watch(WatchResultsRequest(after=1))
        assert [(await call.read()).cursor for _ in range(2)] == [2, 3]
        source.closing = True
        source.add(0)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        source.closing = False
        source.add(2)
        again = watch(WatchResultsRequest(after=3))
        assert [(await again.read()).cursor for _ in range(2)] == [4, 5]
        again.cancel()


@pytest.mark.slow
async def test_watchers_miss_and_repeat_no_result_after_kills(tmp_path: Path) -> None:
    telemetry = Recording()
    with CollectorProcess(tmp_path) as collector:
        await asyncio.to_thread(collector.start)
        tracing = provider(processor(collector.grpc, telemetry, shutdown_timeout=20.0))
        seen: list[int] = []
        pieces: list[int] = []

        async def watch() -> None:
            async for result in watch_results(endpoint=collector.grpc):
                seen.append(result["cursor"])  # noqa: PERF401 - the list is read concurrently

        async def watch_a_little() -> None:
            async for result in watch_results(endpoint=collector.grpc, after=pieces[-1] if pieces else 0):
                pieces.append(result["cursor"])
                if len(pieces) % 7 == 0:
                    return

        async def watch_in_pieces() -> None:
            while True:
                await watch_a_little()

        watchers = [asyncio.create_task(watch()), asyncio.create_task(watch_in_pieces())]
        for seed in range(6):
            run_agent(tracing.get_tracer("t"), seed)
            assert await asyncio.to_thread(tracing.force_flush)
            if seed % 2:
                await until(lambda: bool(seen))
                collector.kill()
                await asyncio.to_thread(collector.start)
        await asyncio.to_thread(tracing.shutdown)
        await asyncio.to_thread(collector.until, collector.at_rest, "at rest")
        with collector.database() as database:
            stored = [row[0] for row in database.execute("SELECT seq FROM results ORDER BY seq")]
        await asyncio.to_thread(patiently, lambda: len(stored) == len(seen) == len(pieces), "all results", 60)
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        assert telemetry.of("traces", "acknowledged") == 6
        assert seen == pieces == stored
