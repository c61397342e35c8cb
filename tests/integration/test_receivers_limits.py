"""Receivers under large, compressed, damaged and random requests."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import httpx
import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from pandaeval_collector.receivers import Draining, Overloaded, TooLarge
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from support.examples import examples
from support.receivers import (
    CountingTelemetry,
    RecordingIngest,
    grpc_client,
    grpc_receiver,
    http_client,
    http_receiver,
    trace_request,
    until,
)

PROTOBUF, JSON = {"content-type": "application/x-protobuf"}, {"content-type": "application/json"}
ROOT = Path(__file__).parents[2]
MIB = 1 << 20


class TestAdmission:
    async def test_requests_share_the_byte_budget_and_return_it(self) -> None:
        admission = Admission(100)
        async with admission.reserve(60) as first:
            first.grow(20)
            assert (admission.in_flight, first.size) == (80, 80)
            with pytest.raises(Overloaded) as raised:
                async with admission.reserve(21):
                    pass
            assert raised.value.retry_after_s == 1.0
            with pytest.raises(Overloaded):
                async with admission.reserve(10) as second:
                    second.grow(11)
            assert admission.in_flight == 80
            async with admission.reserve(20):
                assert admission.in_flight == 100
        assert (admission.in_flight, admission.peak, admission.refused) == (0, 100, 2)

    async def test_requests_larger_than_the_budget_are_too_large(self) -> None:
        admission = Admission(100)
        with pytest.raises(TooLarge):
            async with admission.reserve(101):
                pass
        async with admission.reserve(100) as reservation:
            with pytest.raises(TooLarge):
                reservation.grow(1)
        assert (admission.in_flight, admission.refused) == (0, 2)

    async def test_requests_are_refused_while_draining(self) -> None:
        admission = Admission(100, draining=True)
        with pytest.raises(Draining):
            async with admission.reserve(1):
                pass
        admission.draining = False
        async with admission.reserve(1):
            pass

    def test_a_budget_of_0_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="positive"):
            Admission(0)

    async def test_grpc_and_http_refuse_requests_while_draining_or_full(self) -> None:
        ingest, admission = RecordingIngest(), Admission(1_000, draining=True)
        ingest.gate = asyncio.Event()
        body = trace_request(text="a" * 600).SerializeToString()
        async with (
            grpc_receiver(ingest, admission=admission) as grpc_at,
            http_receiver(ingest, admission=admission) as http_at,
            grpc_client(grpc_at) as (traces, _),
            http_client(http_at) as client,
        ):
            assert (await client.post("/v1/traces", content=body, headers=PROTOBUF)).status_code == 503
            assert await code_of(traces.Export(trace_request())) is grpc.StatusCode.UNAVAILABLE
            admission.draining = False
            holding = asyncio.create_task(client.post("/v1/traces", content=body, headers=PROTOBUF))
            await until(lambda: ingest.calls == 1)
            refused = await client.post("/v1/traces", content=body, headers=PROTOBUF)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            request = trace_request(text="a" * 600)
            assert await code_of(traces.Export(request)) is grpc.StatusCode.RESOURCE_EXHAUSTED
            ingest.gate.set()
            assert (await holding).status_code == 200
            assert await traces.Export(request) == ExportTraceServiceResponse()
        assert ingest.calls == 2


class TestManyCalls:
    async def test_three_thousand_simultaneous_grpc_calls_are_answered(self) -> None:
        """gRPC cancels calls if more than a thousand wait."""
        ingest, local = RecordingIngest(), (("grpc.use_local_subchannel_pool", 1),)
        async with grpc_receiver(ingest) as where, contextlib.AsyncExitStack() as channels:
            opened = [grpc.aio.insecure_channel(str(where), options=local) for _ in range(30)]
            traces = [TraceServiceStub(await channels.enter_async_context(channel)) for channel in opened]
            codes = await asyncio.gather(*(code_of(traces[n % 30].Export(trace_request())) for n in range(3_000)))
        assert set(codes) == {grpc.StatusCode.OK}
        assert len(ingest.stored) == 3_000


async def code_of(call: grpc.aio.UnaryUnaryCall) -> grpc.StatusCode:
    return await call.code()


class TestSizes:
    async def test_grpc_accepts_five_mebibytes(self) -> None:
        ingest, request = RecordingIngest(), trace_request(text="a" * 5 * MIB)
        async with grpc_receiver(ingest) as where, grpc_client(where) as (traces, _):
            await traces.Export(request)
            await traces.Export(request, compression=grpc.Compression.Gzip)
        assert ingest.stored == [request, request]

    async def test_grpc_rejects_too_large_requests_permanently(self) -> None:
        async with grpc_receiver(RecordingIngest(), max_bytes=MIB) as where, grpc_client(where) as (traces, _):
            for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await traces.Export(trace_request(text="a" * MIB), compression=compression)
                assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert "google.rpc.retryinfo-bin" not in dict(tuple(raised.value.trailing_metadata() or ()))
            assert await traces.Export(trace_request()) == ExportTraceServiceResponse()

    async def test_http_rejects_too_large_requests_permanently(self) -> None:
        async def in_chunks() -> AsyncIterator[bytes]:
            for _ in range(40):
                yield b"a" * (MIB // 20)

        telemetry, admission = CountingTelemetry(), Admission(8 * MIB)
        door = http_receiver(RecordingIngest(), telemetry=telemetry, admission=admission, max_bytes=MIB)
        async with door as where, http_client(where) as client:
            for content in (b"a" * (MIB + 1), in_chunks()):
                response = await client.post("/v1/traces", content=content, headers=PROTOBUF)
                assert response.status_code == 413
            stored = zlib.compress(b"\0" * (MIB + 1), 0)  # also larger than the limit when compressed
            response = await client.post(
                "/v1/traces", content=stored, headers={**PROTOBUF, "content-encoding": "deflate"}
            )
            assert response.status_code == 413
            assert (await client.post("/v1/traces", content=b"", headers=PROTOBUF)).status_code == 200
        assert telemetry.requests == {("http", "too_large"): 3, ("http", "accepted"): 1}
        assert admission.in_flight == 0

    async def test_json_that_needs_too_much_memory_when_parsed_is_rejected(self) -> None:
        body = b'{"resourceSpans": [' + b"{}," * 100_000 + b"{}]}"
        async with (
            http_receiver(RecordingIngest(), admission=Admission(32 * MIB)) as where,
            http_client(where) as client,
        ):
            response = await client.post("/v1/traces", content=body, headers=JSON)
        assert response.status_code == 413

    async def test_large_json_is_stored_and_errors_name_their_place(self) -> None:
        span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "a" * 1_000}
        document = {"resourceSpans": [{"scopeSpans": [{"spans": [span] * 1_000}]}]}
        ingest = RecordingIngest()
        async with http_receiver(ingest) as where, http_client(where) as client:
            assert (await client.post("/v1/traces", json=document)).status_code == 200
            assert (await client.post("/v1/traces", json={**document, "resourceLogs": 5})).status_code == 200
            document["resourceSpans"].append({"scopeSpans": 5})
            response = await client.post("/v1/traces", json=document)
        assert response.json()["message"] == "resourceSpans[1].scopeSpans: not an array"
        assert len(ingest.stored[0].resource_spans[0].scope_spans[0].spans) == 1_000

    @pytest.mark.parametrize("depth", [10, 65, 1_000, 10_000, 100_000])
    async def test_deeply_nested_json_is_rejected(self, depth: int) -> None:
        body = b'{"resourceSpans": [], "x": ' + b"[" * depth + b"]" * depth + b"}"
        async with http_receiver(RecordingIngest()) as where, http_client(where) as client:
            response = await client.post("/v1/traces", content=body, headers=JSON)
        assert response.status_code == (200 if depth == 10 else 400)


class ChildDoors(NamedTuple):
    """Both receivers in their own process."""

    process: subprocess.Popen[str]
    http: Address
    grpc: Address

    def peak_rss(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


_CHILD = """
import asyncio, sys
from support.receivers import RecordingIngest, grpc_receiver, http_receiver
async def main():
    async with http_receiver(RecordingIngest()) as http, grpc_receiver(RecordingIngest(), max_bytes=8 << 20) as grpc:
        print(http.port, grpc.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


@pytest.fixture
def child_doors() -> Iterator[ChildDoors]:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to see the memory of another process")
    paths = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{_CHILD}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    http, grpc_port = map(int, process.stdout.readline().split())
    yield ChildDoors(process, Address("127.0.0.1", http), Address("127.0.0.1", grpc_port))
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


class TestBombs:
    @pytest.mark.parametrize("encoding", ["gzip", "zstd", "deflate"])
    async def test_eight_simultaneous_http_bombs_are_rejected_in_bounded_memory(
        self, child_doors: ChildDoors, encoding: str
    ) -> None:
        compress = {"gzip": gzip.compress, "zstd": zstandard.compress, "deflate": zlib.compress}[encoding]
        bomb = compress(b"\0" * 200_000_000)
        before = child_doors.peak_rss()
        async with http_client(child_doors.http) as client:
            headers = {**PROTOBUF, "content-encoding": encoding}
            answers = await asyncio.gather(
                *(client.post("/v1/traces", content=bomb, headers=headers) for _ in range(8))
            )
            grown = child_doors.peak_rss() - before
            assert (await client.post("/v1/traces", content=b"", headers=PROTOBUF)).status_code == 200
        assert {answer.status_code for answer in answers} <= {413, 503}  # 503: other requests used the budget
        assert 413 in {answer.status_code for answer in answers}
        assert grown < 2 * 64 * MIB  # unpacked, the eight are 1.6 GB; the cap is 64 MiB for each

    async def test_eight_simultaneous_grpc_bombs_are_rejected_in_bounded_memory(self, child_doors: ChildDoors) -> None:
        bomb = b"\0" * (32 * MIB)
        before = child_doors.peak_rss()
        options = (("grpc.max_send_message_length", -1),)
        async with grpc.aio.insecure_channel(str(child_doors.grpc), options=options) as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            calls = [export(bomb, compression=grpc.Compression.Gzip) for _ in range(8)]
            codes = {await call.code() for call in calls}
            grown = child_doors.peak_rss() - before
            assert await export(b"") == b""
        assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert grown < 64 * MIB  # unpacked, the eight are 256 MiB; the cap is 8 MiB for each


class TestRandomBytes:
    """No internal error."""

    @settings(max_examples=examples(150), deadline=None)
    @given(
        content=st.binary(max_size=200),
        media=st.sampled_from(["application/x-protobuf", "application/json"]),
        encoding=st.sampled_from(["identity", "gzip", "zstd", "deflate"]),
        wrap=st.booleans(),
    )
    def test_random_bytes_over_http_cause_no_internal_error(
        self, content: bytes, media: str, encoding: str, wrap: bool
    ) -> None:
        compress = {"gzip": gzip.compress, "zstd": zstandard.compress, "deflate": zlib.compress}
        body = compress[encoding](content) if wrap and encoding in compress else content
        telemetry = CountingTelemetry()

        async def post() -> httpx.Response:
            app = otlp_http_app(RecordingIngest(), DoorSettings(Admission(MIB), telemetry=telemetry))
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://door") as client:
                headers = {"content-type": media, "content-encoding": encoding}
                return await client.post("/v1/traces", content=body, headers=headers)

        assert asyncio.run(post()).status_code in (200, 400)
        assert ("http", "internal_error") not in telemetry.requests

    async def test_random_bytes_over_grpc_cause_no_internal_error(self) -> None:
        noise, whole, telemetry = random.Random(7), trace_request(3).SerializeToString(), CountingTelemetry()
        door = grpc_receiver(RecordingIngest(), telemetry=telemetry)
        async with door as where, grpc.aio.insecure_channel(str(where)) as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            for size in range(len(whole)):
                damaged = bytearray(whole)
                damaged[size] ^= 1 << noise.randrange(8)
                for content in (whole[:size], bytes(damaged), noise.randbytes(size)):
                    code = await export(content).code()
                    assert code in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)
        assert set(telemetry.requests) == {("grpc", "accepted"), ("grpc", "malformed")}
