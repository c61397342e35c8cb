"""Slow senders block no other sender."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from starlette.types import Receive, Scope, Send

from pandaeval_collector.receivers import admission as admission_module
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, grpc_connections, health_connections, http_connections
from pandaeval_collector.receivers.health import health_app
from pandaeval_collector.receivers.own_grpc import ResultsHandler
from pandaeval_collector.receivers.server import Crowd, HttpServer
from support.half_sent import HalfSender
from support.receivers import (
    LOOPBACK,
    CountingTelemetry,
    RecordingIngest,
    grpc_client,
    grpc_receiver,
    http_client,
    http_receiver,
    trace_request,
    until,
)

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOBUF = {"content-type": "application/x-protobuf"}
MIB, UNREAD = 1 << 20, 128 * 1024


async def _sent(door: TraceServiceStub) -> None:
    while True:
        try:
            await door.Export(trace_request())
            return
        except grpc.aio.AioRpcError as refused:
            if refused.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise


class TestHalfSentOverGrpc:
    @pytest.mark.parametrize("method", [EXPORT, "/pandaeval.v1.ResultService/WatchResults"])
    async def test_only_messages_being_read_are_received(self, method: str) -> None:
        reading = BodyReader(2, patience_s=300, timeout_s=300)  # long limits, for slow machines
        handlers = [ResultsHandler(None, DoorSettings(Admission(1), reading=reading)).handler]  # type: ignore[arg-type]
        async with (
            grpc_receiver(RecordingIngest(), reading=reading, handlers=handlers) as where,
            HalfSender(where.host, where.port) as sender,
        ):
            calls = [asyncio.create_task(sender.call(method, 4 * MIB, 3 * MIB)) for _ in range(20)]
            await until(lambda: sum(call.done() for call in calls) == 2)
            await until(lambda: sum(sender.sent.values()) > 2 * 3 * MIB + 10 * 16_384)
            assert sum(sender.sent.values()) < 2 * 3 * MIB + 20 * (UNREAD + 2 * 16_384)
            for call in calls:
                call.cancel()

    async def test_other_senders_are_not_blocked(self) -> None:
        ingest, telemetry = RecordingIngest(), CountingTelemetry()
        reading = BodyReader(2, patience_s=0.05)
        async with (
            grpc_receiver(ingest, reading=reading, telemetry=telemetry) as where,
            HalfSender(where.host, where.port) as sender,
            grpc_client(where) as (traces, _),
        ):
            calls = [asyncio.create_task(sender.call(EXPORT, MIB, MIB // 2)) for _ in range(20)]
            await until(lambda: any(call.done() for call in calls))
            for _ in range(10):
                await _sent(traces)
            await until(lambda: telemetry.requests["grpc", "overloaded"] > 0)
            for call in calls:
                call.cancel()
        assert len(ingest.stored) == 10

    async def test_a_message_that_never_ends_is_closed_as_malformed(self) -> None:
        telemetry = CountingTelemetry()
        reading = BodyReader(2, timeout_s=0.2)
        async with (
            grpc_receiver(RecordingIngest(), reading=reading, telemetry=telemetry) as where,
            HalfSender(where.host, where.port) as sender,
        ):
            stream = await sender.call(EXPORT, MIB, MIB // 2)
            await until(lambda: stream in sender.ended)
        assert telemetry.requests == {("grpc", "malformed"): 1}

    async def test_closed_calls_free_their_memory(self) -> None:
        reading = BodyReader(2, timeout_s=0.1)
        async with (
            grpc_receiver(RecordingIngest(), reading=reading) as where,
            HalfSender(where.host, where.port) as sender,
        ):
            gc.collect()
            others = {id(each) for each in _contexts()}
            gc.disable()
            try:
                streams = [await sender.call(EXPORT, MIB, MIB // 2) for _ in range(2)]
                await until(lambda: sender.ended.keys() >= set(streams))
                await until(lambda: not {id(each) for each in _contexts()} - others)
            finally:
                gc.enable()


def _contexts() -> list[object]:
    """Return live gRPC call contexts of this process."""
    return [each for each in gc.get_objects() if type(each).__name__ == "_ServicerContext"]


@contextlib.asynccontextmanager
async def begun(where: Address, head: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Return a connection after a partial request."""
    reader, writer = await asyncio.open_connection(*where)
    writer.write(head)
    try:
        yield reader, writer
    finally:
        writer.close()


POST = b"POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\n"


class TestHttp:
    @pytest.mark.parametrize("head", [b"", POST, POST + b"x: "], ids=["nothing", "no end", "half a header"])
    async def test_a_connection_without_complete_headers_is_closed_in_time(self, head: bytes) -> None:
        server = HttpServer(health_app(dict, None), LOOPBACK, setting="server.health", head_s=0.2)
        where = await server.start()
        async with begun(where, head) as (reader, _), http_client(where) as client:
            for _ in range(3):  # complete requests on one connection are answered
                assert (await client.get("/healthz")).status_code == 200
            assert await reader.read() == b""
        await server.stop(1)

    async def test_slowly_sent_headers_do_not_extend_the_time_limit(self) -> None:
        server = HttpServer(health_app(dict, None), LOOPBACK, setting="server.health", head_s=0.3)
        where = await server.start()
        async with begun(where, b"GET /healthz HTTP/1.1\r\n") as (reader, writer):
            ended = asyncio.create_task(reader.read())
            with contextlib.suppress(ConnectionError):
                while not ended.done():
                    writer.write(b"x: y\r\n")
                    await asyncio.sleep(0.02)
            with contextlib.suppress(ConnectionError):  # a reset, if a header was in transit
                assert await ended == b""
            assert ended.done()
        await server.stop(1)

    async def test_a_client_that_does_not_read_the_answer_is_disconnected(self) -> None:
        body, ended = bytes(1 << 16), asyncio.Event()

        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            pieces = 1000 if scope["path"] == "/unread" else 100
            for number in range(pieces):
                await send({"type": "http.response.body", "body": body, "more_body": number < pieces - 1})
            ended.set()

        server = HttpServer(endless, LOOPBACK, setting="server.http", unread_s=0.2)
        where = await server.start()
        async with (
            begun(where, b"GET /unread HTTP/1.1\r\nhost: a\r\n\r\n") as (reader, _),
            http_client(where) as client,
        ):
            await asyncio.wait_for(ended.wait(), 60)
            assert len((await client.get("/read")).content) == 100 << 16
            with contextlib.suppress(ConnectionError):
                assert len(await reader.read()) < 1000 << 16
        await server.stop(1)

    async def test_a_full_listener_drops_the_oldest_idle_connections(self) -> None:
        server = HttpServer(health_app(dict, None), LOOPBACK, setting="server.health", connections=4)
        where = await server.start()
        async with contextlib.AsyncExitStack() as stack:
            idle = [await stack.enter_async_context(begun(where, b"GET /")) for _ in range(12)]
            async with http_client(where) as client:
                assert (await client.get("/healthz")).status_code == 200
            ended = [await reader.read() for reader, _ in idle[:9]]
            assert ended == [b""] * 9
        await server.stop(1)

    async def test_a_connection_with_a_running_request_is_not_dropped(self) -> None:
        ingest = RecordingIngest()
        ingest.gate = asyncio.Event()
        body = trace_request().SerializeToString()
        async with http_receiver(ingest, connections=2) as where, http_client(where) as client:
            first = asyncio.create_task(client.post("/v1/traces", content=body, headers=PROTOBUF))
            await until(lambda: ingest.calls == 1)
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(5):
                    await stack.enter_async_context(begun(where, b"GET /"))
                ingest.gate.set()
                assert (await first).status_code == 200

    async def test_stalled_bodies_are_dropped_if_space_is_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(admission_module, "_PATIENCE_S", 0.05)
        admission = Admission(4 * MIB)
        head = POST + b"content-length: 2000000\r\n\r\n" + bytes(1_900_000)
        whole = trace_request(text="a" * MIB).SerializeToString()
        async with (
            http_receiver(RecordingIngest(), admission=admission, body_timeout_s=60) as where,
            http_client(where) as client,
            begun(where, head) as (first, _),
            begun(where, head) as (second, _),
        ):
            await until(lambda: admission.in_flight == 3_800_000)

            async def accepted() -> bool:
                answer = await client.post("/v1/traces", content=whole, headers=PROTOBUF)
                assert answer.status_code in (200, 503)
                await asyncio.sleep(0.06)
                return answer.status_code == 200

            async with asyncio.timeout(60):
                while not await accepted():
                    pass
            assert b"503" in await first.readline()
            assert admission.in_flight < 2_000_000
            del second

    async def test_bodies_that_make_progress_are_not_dropped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(admission_module, "_PATIENCE_S", 0.05)
        monkeypatch.setattr(admission_module, "_PACE", 1_000)
        admission = Admission(MIB)
        head = POST + b"content-length: 1000000\r\n\r\n" + bytes(900_000)
        async with (
            http_receiver(RecordingIngest(), admission=admission) as where,
            http_client(where) as client,
            begun(where, head) as (reader, writer),
        ):
            await until(lambda: admission.in_flight == 900_000)
            for _ in range(10):
                answer = await client.post("/v1/traces", content=bytes(400_000), headers=PROTOBUF)
                assert answer.status_code == 503
                writer.write(bytes(10_000))
                await asyncio.sleep(0.06)
            assert b"400" in await reader.readline()  # invalid, but read to its end


class TestConnections:
    def test_receivers_share_the_connection_limit(self) -> None:
        assert grpc_connections() + http_connections() + health_connections() < 5 * http_connections()
        assert 16 <= health_connections() <= 64

    def test_a_full_listener_drops_only_idle_connections(self) -> None:
        class One:
            dropped = False

            def drop(self) -> None:
                self.dropped = True

        crowd, connections = Crowd(2), [One() for _ in range(4)]
        for connection in connections[:2]:
            crowd.came(connection)
            crowd.busy(connection)
        crowd.came(connections[2])
        assert [each.dropped for each in connections] == [False, False, True, False]
        crowd.went(connections[2])
        crowd.waits(connections[0])
        crowd.came(connections[3])
        assert [each.dropped for each in connections] == [True, False, True, False]


async def test_grpc_refuses_connections_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pandaeval_collector.receivers.otlp_grpc.grpc_connections", lambda: 3)
    async with grpc_receiver(RecordingIngest()) as where, contextlib.AsyncExitStack() as stack:
        senders = [await stack.enter_async_context(HalfSender(where.host, where.port)) for _ in range(3)]
        for sender in senders:
            await asyncio.wait_for(sender.settled.wait(), 60)
        refused = HalfSender(where.host, where.port)
        with contextlib.suppress(OSError):
            await stack.enter_async_context(refused)
            await asyncio.wait([refused.listening], timeout=60)
        assert not refused.settled.is_set()


@pytest.mark.parametrize("message", [b"", b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"])
async def test_idle_grpc_connections_are_closed_and_new_ones_accepted(
    monkeypatch: pytest.MonkeyPatch, message: bytes
) -> None:
    monkeypatch.setattr("pandaeval_collector.receivers.otlp_grpc.grpc_connections", lambda: 3)
    async with grpc_receiver(RecordingIngest(), handshake_s=0.5, idle_s=0.5) as where:
        idle = [await asyncio.open_connection(*where) for _ in range(3)]
        for _, writer in idle:
            writer.write(message)
        async with asyncio.timeout(60):
            for reader, writer in idle:
                with contextlib.suppress(ConnectionError):
                    while await reader.read(1 << 16):
                        pass
                writer.close()
        async with grpc_client(where) as (traces, _):
            await traces.Export(trace_request(), timeout=60, wait_for_ready=True)
