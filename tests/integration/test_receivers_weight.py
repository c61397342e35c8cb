"""Requests of many small objects are refused before parsing."""

from __future__ import annotations

import gc
import gzip
import tracemalloc
from collections.abc import Sequence

import grpc
import pytest

from pandaeval_collector.receivers import Accepted, Dense
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.own_grpc import submit_handler
from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace
from pandaeval_otel.wire.fragments import DenseError
from pandaeval_otel.wire.splitting import split_traces
from support.receivers import CountingTelemetry, RecordingIngest, grpc_receiver, http_client, http_receiver
from support.wire_bytes import field, in_item, in_scope, in_value, nested_value, tiny_spans

PROTOBUF, JSON = {"content-type": "application/x-protobuf"}, {"content-type": "application/json"}
SERVICES = "/opentelemetry.proto.collector."
TRACES, LOGS = f"{SERVICES}trace.v1.TraceService/Export", f"{SERVICES}logs.v1.LogsService/Export"
SUBMIT = "/pandaeval.v1.TraceService/SubmitTraces"
MANY = 1_000_000
ITEMS = {
    "resources": b"\x0a\0" * MANY,
    "scopes": field(1, b"\x12\0" * MANY),
    "items": in_scope(b"\x12\0" * MANY),
}
PARTS = {
    "attributes": in_item(b"\x4a\0" * 2 * MANY + b"\x4a\0"),
    "pairs of one value": in_value(field(6, b"\x0a\0" * 2 * MANY)),
    "attributes of a resource": field(1, field(1, b"\x0a\0" * 2 * MANY)),
}


class Weighing(RecordingIngest):
    """Records large requests and stores none."""

    def __init__(self) -> None:
        super().__init__()
        self.large: list[bool] = []

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        if not large:
            try:
                split_traces(request, at_most=5_000)
            except DenseError:
                raise Dense from None
        self.large.append(large)
        return Accepted()

    logs = traces

    async def submit(self, traces: Sequence[CompletedTrace], large: bool = False) -> list[str]:
        self.large.append(large)
        return [""] * len(traces)


@pytest.mark.parametrize("body", [*ITEMS.values(), *PARTS.values()], ids=[*ITEMS, *PARTS])
async def test_http_rejects_requests_with_too_many_items(body: bytes) -> None:
    ingest, telemetry, admission = Weighing(), CountingTelemetry(), Admission(64 << 20)
    async with http_receiver(ingest, telemetry=telemetry, admission=admission) as where, http_client(where) as client:
        headers = {**PROTOBUF, "content-encoding": "gzip"}
        answer = await client.post("/v1/traces", content=gzip.compress(body, 1), headers=headers)
        assert answer.status_code == 413
        assert f"{len(body)} bytes hold more than 200000 items" in answer.text
    assert (ingest.large, telemetry.requests) == ([], {("http", "too_large"): 1})
    assert (admission.in_flight, admission.peak) == (0, 3 * len(body))


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
@pytest.mark.parametrize("method", [TRACES, LOGS])
async def test_grpc_rejects_requests_with_too_many_items(method: str, compression: grpc.Compression) -> None:
    ingest = Weighing()
    async with grpc_receiver(ingest) as where, grpc.aio.insecure_channel(str(where)) as channel:
        for body in ITEMS.values():
            call = channel.unary_unary(method)(body, compression=compression)
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "send smaller batches" in await call.details()
            assert not await call.trailing_metadata()  # no request to retry
    assert not ingest.large


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\0" * MANY,
        b"\x0a\0" * 12_000,
        field(1, field(2, ITEMS["items"])),
        field(1, field(3, in_item(b"\x32\0" * 2 * MANY))),
    ],
    ids=["traces", "traces in a small request", "spans", "attributes of a record"],
)
async def test_submitted_traces_with_too_many_items_are_rejected(body: bytes) -> None:
    ingest, admission = Weighing(), Admission(64 << 20)
    handler = submit_handler(ingest, DoorSettings(admission))
    async with grpc_receiver(ingest, handlers=[handler]) as where, grpc.aio.insecure_channel(str(where)) as channel:
        call = channel.unary_unary(SUBMIT)(body)
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "send smaller batches" in await call.details()
    assert (ingest.large, admission.in_flight) == ([], 0)


async def test_json_with_too_many_items_is_rejected() -> None:
    body = b'{"resourceSpans":[' + b"{}," * 20_000 + b"{}]}"
    ingest = Weighing()
    async with http_receiver(ingest, max_items=10_000) as where, http_client(where) as client:
        answer = await client.post("/v1/traces", content=body, headers=JSON)
    assert (answer.status_code, ingest.large) == (413, [])
    assert "more than 10000 items" in answer.json()["message"]


async def test_large_requests_are_marked_and_charged_more_than_their_bytes() -> None:
    ingest, admission = Weighing(), Admission(256 << 20)
    async with (
        http_receiver(ingest, admission=admission) as where,
        http_client(where) as client,
    ):
        for body in (tiny_spans(100), tiny_spans(4_000), tiny_spans(6_000), tiny_spans(50_000)):
            assert (await client.post("/v1/traces", content=body, headers=PROTOBUF)).status_code == 200
            if len(body) > 150_000:
                assert admission.peak > 13 * len(body)
        assert (await client.post("/v1/traces", content=in_item(b"\x4a\0" * 300_000), headers=PROTOBUF)).is_success
    assert ingest.large == [False, False, True, True, True]
    assert admission.in_flight == 0


@pytest.mark.parametrize("depth", [10, 60, 1_000, 20_000])
async def test_deeply_nested_values_are_rejected(depth: int) -> None:
    async with http_receiver(RecordingIngest()) as where, http_client(where) as client:
        answer = await client.post("/v1/traces", content=nested_value(depth), headers=PROTOBUF)
    assert answer.status_code == (200 if depth == 10 else 400)


async def test_refused_requests_free_their_memory_at_once() -> None:
    body = b"\xff" * 3_000_000
    async with (
        grpc_receiver(RecordingIngest(), admission=Admission(1_000)) as where,
        grpc.aio.insecure_channel(str(where)) as channel,
    ):
        export = channel.unary_unary(TRACES)
        await export(b"")
        gc.disable()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            codes = {await export(body).code() for _ in range(10)}
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
            gc.enable()
    assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert kept < len(body)
