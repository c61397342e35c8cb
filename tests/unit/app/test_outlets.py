"""Outbox bounds and exporter discovery."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pandaeval_collector.app import outlets as module
from pandaeval_collector.app.outlets import Outlets, configured, instance_id
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import load
from pandaeval_collector.exporters import RetryLaterError, Surroundings
from pandaeval_collector.exporters._otlp.build import ItemExporter
from pandaeval_collector.exporters._otlp.transport import Envelope
from pandaeval_collector.exporters.delivery.outbox import Outbox
from pandaeval_collector.exporters.jsonl import JsonlExporter
from pandaeval_collector.store import OutboxRow, Store, WriteSet, outbox_batches
from pandaeval_otel.base.component_errors import ERRORS
from pandaeval_otel.wire.skeleton import Request
from support.receivers import until

OTLP = {"PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": "127.0.0.1:1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data", "off", max_bytes=4 << 20)
    yield made
    made.close()


def put(store: Store, signal: str, rows: int, size: int = 100) -> None:
    items = [random.randbytes(size) for _ in range(rows)]
    store.commit(WriteSet(outbox=[*outbox_batches(signal, items)])).result()


def names(store: Store, **environ: str) -> set[str]:
    return {each.name for each in configured(load(None, environ), Surroundings(store, Telemetry(), {}))}


class TestConfiguredExporters:
    def test_none_by_default(self, store: Store) -> None:
        assert names(store) == set()

    def test_one_otlp_endpoint_enables_all_signals(self, store: Store, tmp_path: Path) -> None:
        lines = {"PANDAEVAL_EXPORTERS__JSONL__PATH": str(tmp_path / "r.jsonl")}
        assert names(store, **OTLP, **lines) == {"otlp.logs", "otlp.traces", "otlp.metrics", "jsonl"}

    def test_one_signal_can_be_disabled(self, store: Store) -> None:
        assert names(store, **OTLP, PANDAEVAL_EXPORTERS__OTLP__LOGS__ENABLED="false") == {"otlp.traces", "otlp.metrics"}

    def test_one_signal_can_be_enabled_alone(self, store: Store) -> None:
        assert names(store, PANDAEVAL_EXPORTERS__OTLP__LOGS__ENDPOINT="logs:4317") == {"otlp.logs"}

    async def test_only_signals_with_an_exporter_are_encoded(self, store: Store) -> None:
        config = load(None, {"PANDAEVAL_EXPORTERS__OTLP__TRACES__ENDPOINT": "127.0.0.1:1"})
        assert Outlets(config, Surroundings(store, Telemetry(), {})).signals == {"traces"}

    async def test_the_instance_id_is_kept_in_the_store_across_restarts(self, tmp_path: Path) -> None:
        found = []
        for _ in range(2):
            store = Store(tmp_path / "data", "off")
            found += [await instance_id(store), await instance_id(store)]
            store.close()
        assert found[0]
        assert len(set(found)) == 1


class TestBounds:
    @pytest.fixture
    async def outlets(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Outlets]:
        monkeypatch.setattr(module, "_TIDY_S", 0.01)
        monkeypatch.setattr(module, "_BOUND_EVERY", 1)
        self.telemetry = Telemetry()
        made = Outlets(load(None, OTLP), Surroundings(store, self.telemetry, {}))
        yield made
        await made.stop()

    def dropped(self) -> dict[str, int]:
        counts = self.telemetry.counts().items()
        return {reason: n for (name, _, reason), n in counts if name == "pandaeval.exporter.items"}

    async def test_the_outbox_is_limited_to_a_fifth_of_the_disk_budget(self, store: Store, outlets: Outlets) -> None:
        put(store, "logs", 1500, 1000)
        await outlets.start()
        await until(lambda: store.outbox.size() <= 0.2 * store.max_bytes)
        left = store.outbox.waiting("logs", 0)
        assert 500 < left < 1000, "no more rows than necessary are dropped"
        assert self.dropped() == {"disk_share": 1500 - left}

    async def test_only_rows_older_than_a_day_are_dropped(self, store: Store, outlets: Outlets) -> None:
        put(store, "traces", 2500)
        store.clock._running += 3600
        put(store, "traces", 3)
        store.clock._running += 23 * 3600
        await outlets.start()
        await until(lambda: self.dropped() == {"too_old": 2500})
        assert store.outbox.waiting("traces", 0) == 3

    async def test_waiting_rows_are_reported_as_queue_size(self, store: Store, outlets: Outlets) -> None:
        put(store, "logs", 3)
        await outlets.start()

        def waiting() -> dict[str, float]:
            found = (m for m in self.telemetry.measures() if m.instrument.name == "pandaeval.queue.size")
            return {dict(measure.attributes)["pandaeval.queue"]: measure.value for measure in found}

        await until(lambda: bool(waiting().get("outbox.logs")))
        assert waiting() == {"outbox.logs": 3, "outbox.traces": 0}

    @pytest.mark.parametrize(
        ("held", "size", "room"),
        [
            (0, 0, 200),
            (150, 600, 200),
            (150, 1000, 100),  # the rest takes 850 of 950
            (150, 1200, 0),
        ],
    )
    def test_the_outbox_share_shrinks_before_the_store_refuses_spans(self, held: int, size: int, room: int) -> None:
        assert module._room(held, size, 1000) == room


class Recorder:
    """A transport that keeps requests; ``fail``: first errors."""

    def __init__(self, *fail: Exception) -> None:
        self.fail = list(fail)
        self.sent: list[list[bytes]] = []
        self.attempts: list[bytes] = []

    async def open(self) -> None: ...

    async def send(self, request: bytes) -> bytes:
        self.attempts.append(request)
        if self.fail:
            raise self.fail.pop(0)
        self.sent.append(list(Request.FromString(request).resourced[0].scoped[0].items))
        return b""

    async def close(self) -> None: ...


class TestOutbox:
    async def run(self, store: Store, transport: Recorder, rows: int) -> None:
        outbox = Outbox(store, ItemExporter("logs", transport, Envelope("i")), Telemetry())
        await outbox.start()
        await until(lambda: sum(map(len, transport.sent)) >= rows)
        await outbox.stop()

    async def test_a_large_backlog_is_sent_in_batches_of_up_to_2_mib(self, store: Store) -> None:
        put(store, "logs", 100, 50_000)
        transport = Recorder()
        await self.run(store, transport, 100)
        assert [sum(map(len, items)) <= 2 << 20 for items in transport.sent] == [True] * len(transport.sent)
        assert len(transport.sent) == 3

    async def test_a_row_over_the_batch_size_is_sent_alone(self, store: Store) -> None:
        put(store, "logs", 2, 3 << 20)
        transport = Recorder()
        await self.run(store, transport, 2)
        assert [len(items) for items in transport.sent] == [1, 1]

    async def test_a_retry_sends_the_same_request(self, store: Store) -> None:
        put(store, "logs", 5)
        transport = Recorder(RetryLaterError("not now"), OSError("no route"))
        before = ERRORS.counts()
        await self.run(store, transport, 5)
        assert ERRORS.counts() - before == {("exporter", "otlp.logs"): 1}, "a sink that is not ready is no error"
        assert len(transport.attempts) == 3
        assert len(set(transport.attempts)) == 1

    async def test_a_restart_continues_after_the_last_sent_row(self, store: Store) -> None:
        put(store, "logs", 3)
        await self.run(store, Recorder(), 3)
        put(store, "logs", 2)
        transport = Recorder()
        await self.run(store, transport, 2)
        assert [len(items) for items in transport.sent] == [2]

    async def test_stopping_does_not_wait_for_a_sink_that_is_down(self, store: Store) -> None:
        put(store, "logs", 3)
        transport = Recorder(*[RetryLaterError("down", 500.0)] * 9)
        outbox = Outbox(store, ItemExporter("logs", transport, Envelope("i")), Telemetry())
        await outbox.start()
        await until(lambda: bool(transport.attempts))
        async with asyncio.timeout(60):
            await outbox.stop()
        assert outbox.seq == 0


async def test_a_full_disk_leaves_no_partial_line_in_the_jsonl_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    path = tmp_path / "results.jsonl"
    exporter = JsonlExporter(path)
    await exporter.open("")
    await exporter.export([OutboxRow("", b"first", 1)])
    write = os.write

    def half(file: int, data: memoryview) -> int:
        if len(data) < 8:
            raise OSError(28, "No space left on device")
        return write(file, data[:5])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        await exporter.export([OutboxRow("", b"second line", 2)])
    monkeypatch.undo()
    await exporter.export([OutboxRow("", b"second line", 2)])
    await exporter.close()
    assert path.read_bytes() == b"first\nsecond line\n"
