"""Open traces are handed over; what the peer refuses for now comes again, what it refuses for good stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pandaeval_collector.pipeline.drain import drain
from pandaeval_collector.store import Chunk, Store
from support.database import open_database
from support.made_traces import Composer
from support.otlp_sink import INVALID, UNAVAILABLE, OtlpSink, too_large


class Leaving:
    """A store with 40 open traces, and a peer."""

    def __init__(self, store: Store, sink: OtlpSink, port: int) -> None:
        self.store, self.sink, self._endpoint = store, sink, f"http://127.0.0.1:{port}"
        composer = Composer(5)
        traces = [composer.trace(2 + number % 3) for number in range(40)]
        self.spans = sum(len(trace.spans) for trace in traces)
        contents = [trace.request().SerializeToString() for trace in traces]
        chunks = [
            Chunk(store.next_chunk_id(), trace.trace_id, False, len(trace.spans), 1, content)
            for trace, content in zip(traces, contents, strict=True)
        ]
        store.append(chunks).result()

    async def drain(self) -> int:
        return await drain(self.store, self._endpoint)

    @property
    def open(self) -> int:
        return len([*self.store.reads.open_chunks()])


@pytest.fixture
async def leaving(tmp_path: Path) -> AsyncIterator[Leaving]:
    store, sink = Store(tmp_path), OtlpSink()
    port, _ = await sink.listen()
    yield Leaving(store, sink, port)
    await sink.hang_up()
    store.close()


async def test_what_the_peer_refuses_for_a_moment_comes_again(leaving: Leaving) -> None:
    leaving.sink.answers["traces"].extend([UNAVAILABLE] * 2)
    assert await leaving.drain() == 40
    assert leaving.open == 0
    assert len(leaving.sink.spans()) == leaving.spans, "each once"


async def test_one_that_is_too_large_for_the_peer_does_not_hold_up_the_others(leaving: Leaving) -> None:
    leaving.sink.always["traces"] = too_large(3)
    assert await leaving.drain() == 27
    assert leaving.open == 13


@pytest.mark.parametrize("answer", [INVALID, UNAVAILABLE])
async def test_a_peer_that_takes_nothing_is_left_alone_soon(
    leaving: Leaving, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    leaving.sink.always["traces"] = answer  # type: ignore[assignment]
    assert await leaving.drain() == 0
    assert leaving.open == 40
    assert len(leaving.sink.seen["traces"]) <= 41
    assert "does not take over" in caplog.text


async def test_a_peer_that_is_gone_fails_no_stop(leaving: Leaving) -> None:
    await leaving.sink.hang_up()
    assert await leaving.drain() == 0
    assert leaving.open == 40


async def test_what_was_damaged_on_disk_stays_here(leaving: Leaving) -> None:
    with open_database(leaving.store.path / "pandaeval.db") as connection:
        connection.execute("UPDATE chunks SET checksum = checksum + 1 WHERE id IN (3, 30)")
    assert await leaving.drain() == 38
    assert [(chunk.id, chunk.data) for chunk in leaving.store.reads.open_chunks()] == [(3, b""), (30, b"")]
