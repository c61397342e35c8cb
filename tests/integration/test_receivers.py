"""Statuses of the receivers, and reactions of real senders."""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import Callable
from inspect import signature
from typing import Any

import grpc
import pytest
import zstandard
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry._logs import Logger
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pandaeval_collector.receivers import Accepted, Draining, Malformed, Overloaded, TooLarge
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.server import HttpServer
from support.receivers import (
    LOOPBACK,
    CountingTelemetry,
    RecordingIngest,
    grpc_client,
    grpc_receiver,
    http_client,
    http_receiver,
    logs_request,
    trace_request,
    until,
)

PROTOBUF, JSON = {"content-type": "application/x-protobuf"}, {"content-type": "application/json"}
TRACE_JSON = {
    "resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "chat"}]}]}]
}
LOGS_JSON = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "hello"}}]}]}]}
HALF_A_REQUEST = (
    b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 100\r\n\r\n"
    + b"a" * 50
)

# error, outcome, gRPC status, HTTP status, text that the sender sees
REFUSALS = [
    (Overloaded("full up", 2.0), "overloaded", grpc.StatusCode.RESOURCE_EXHAUSTED, 503, "full up"),
    (Draining("going away"), "draining", grpc.StatusCode.UNAVAILABLE, 503, "going away"),
    (TooLarge("too much"), "too_large", grpc.StatusCode.RESOURCE_EXHAUSTED, 413, "too much"),
    (Malformed("no ids"), "malformed", grpc.StatusCode.INVALID_ARGUMENT, 400, "no ids"),
    (KeyError("secret prompt"), "internal_error", grpc.StatusCode.INTERNAL, 500, "internal error"),
]  # fmt: skip
refusals = pytest.mark.parametrize(("error", "outcome", "code", "status", "text"), REFUSALS)


class TestGrpc:
    async def test_stores_traces_and_logs(self) -> None:
        ingest, telemetry = RecordingIngest(), CountingTelemetry()
        async with grpc_receiver(ingest, telemetry=telemetry) as where, grpc_client(where) as (traces, logs):
            assert await traces.Export(trace_request(3)) == ExportTraceServiceResponse()
            assert await logs.Export(logs_request()) == ExportLogsServiceResponse()
        assert ingest.stored == [trace_request(3), logs_request()]
        assert telemetry.requests == {("grpc", "accepted"): 2}

    async def test_rejected_items_are_a_partial_success(self) -> None:
        ingest, telemetry = RecordingIngest(Accepted(2, "two had no id"), Accepted(1, "one")), CountingTelemetry()
        async with grpc_receiver(ingest, telemetry=telemetry) as where, grpc_client(where) as (traces, logs):
            partial = (await traces.Export(trace_request())).partial_success
            assert (partial.rejected_spans, partial.error_message) == (2, "two had no id")
            assert (await logs.Export(logs_request())).partial_success.rejected_log_records == 1
        assert telemetry.requests == {("grpc", "partial"): 2}

    async def test_a_warning_without_a_rejection_is_passed_on(self) -> None:
        async with (
            grpc_receiver(RecordingIngest(Accepted(0, "clock skew"))) as where,
            grpc_client(where) as (traces, _),
        ):
            partial = (await traces.Export(trace_request())).partial_success
        assert (partial.rejected_spans, partial.error_message) == (0, "clock skew")

    @refusals
    async def test_ingest_errors_have_status_codes_without_content(
        self, error: Exception, outcome: str, code: grpc.StatusCode, status: int, text: str
    ) -> None:
        ingest, telemetry = RecordingIngest(error, error), CountingTelemetry()
        async with grpc_receiver(ingest, telemetry=telemetry) as where, grpc_client(where) as (traces, logs):
            for export, request in ((traces.Export, trace_request()), (logs.Export, logs_request())):
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await export(request)
                assert raised.value.code() == code
                assert text in str(raised.value.details())
                assert "secret" not in str(raised.value.details())
                retry = dict(tuple(raised.value.trailing_metadata()))
                assert ("google.rpc.retryinfo-bin" in retry) == (outcome == "overloaded")
                assert ("grpc-status-details-bin" in retry) == (outcome == "overloaded")
            await traces.Export(trace_request())  # still works
        assert telemetry.requests == {("grpc", outcome): 2, ("grpc", "accepted"): 1}

    async def test_overload_has_both_retry_trailers(self) -> None:
        async with grpc_receiver(RecordingIngest(Overloaded("full", 1.5))) as where, grpc_client(where) as (traces, _):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await traces.Export(trace_request())
        trailers: dict[str, bytes] = dict(tuple(raised.value.trailing_metadata()))
        plain = RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
        status = Status.FromString(trailers["grpc-status-details-bin"])
        packed = RetryInfo()
        detail: AnyMessage = status.details[0]
        assert detail.Unpack(packed)
        assert plain == packed
        assert plain.retry_delay.ToMilliseconds() == 1_500
        assert (status.code, status.message) == (grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], "full")

    async def test_metrics_are_not_implemented(self) -> None:
        async with grpc_receiver(RecordingIngest()) as where, grpc.aio.insecure_channel(str(where)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await MetricsServiceStub(channel).Export(ExportMetricsServiceRequest())
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED

    async def test_other_services_can_share_the_port(self) -> None:
        async def echo(request: bytes, _: Any) -> bytes:
            return request[::-1]

        methods = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
        handler = grpc.method_handlers_generic_handler("test.Service", methods)
        door = grpc_receiver(RecordingIngest(), handlers=[handler])
        async with door as where, grpc.aio.insecure_channel(str(where)) as channel:
            assert await channel.unary_unary("/test.Service/Echo")(b"abc") == b"cba"

    async def test_a_disconnected_sender_neither_interrupts_the_commit_nor_frees_its_bytes_early(self) -> None:
        ingest, admission = RecordingIngest(), Admission(1 << 20)
        ingest.gate = asyncio.Event()
        async with grpc_receiver(ingest, admission=admission) as where, grpc_client(where) as (traces, _):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await traces.Export(trace_request(), timeout=0.2)
            assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            assert ingest.calls == 1
            assert admission.in_flight == trace_request().ByteSize()
            ingest.gate.set()
            await until(lambda: not admission.in_flight)
        assert ingest.stored == [trace_request()]

    async def test_stop_waits_for_running_requests(self) -> None:
        ingest = RecordingIngest()
        ingest.gate = asyncio.Event()
        server = OtlpGrpcServer(ingest, DoorSettings(Admission(1 << 20)), LOOPBACK)
        async with grpc_client(await server.start()) as (traces, _):
            call = traces.Export(trace_request())
            await until(lambda: bool(ingest.calls))
            asyncio.get_running_loop().call_later(0.2, ingest.gate.set)
            await server.stop(10)
            assert await call == ExportTraceServiceResponse()
        await server.stop(10)
        assert ingest.stored == [trace_request()]


class TestHttp:
    @pytest.mark.parametrize(
        ("encoding", "compress"),
        [
            (None, bytes),
            ("identity", bytes),
            ("gzip", gzip.compress),
            ("GZIP", lambda body: gzip.compress(body[:50], mtime=0) + gzip.compress(body[50:], mtime=0)),
            ("zstd", zstandard.compress),
            ("zstd", lambda body: zstandard.compress(body[:50]) + zstandard.compress(body[50:])),
            ("deflate", zlib.compress),
        ],
    )
    async def test_all_content_encodings_are_read(
        self, encoding: str | None, compress: Callable[[bytes], bytes]
    ) -> None:
        ingest, admission = RecordingIngest(), Admission(1 << 20)
        headers = PROTOBUF if encoding is None else {**PROTOBUF, "content-encoding": encoding}
        async with http_receiver(ingest, admission=admission) as where, http_client(where) as client:
            content = compress(trace_request(100).SerializeToString())
            response = await client.post("/v1/traces", content=content, headers=headers)
        assert (response.status_code, response.content) == (200, b"")
        assert response.headers["content-type"] == "application/x-protobuf"
        assert ingest.stored == [trace_request(100)]
        assert admission.in_flight == 0
        assert admission.peak == trace_request(100).ByteSize()

    async def test_json_traces_and_logs_are_stored(self) -> None:
        ingest, telemetry = RecordingIngest(), CountingTelemetry()
        async with http_receiver(ingest, telemetry=telemetry) as where, http_client(where) as client:
            for path, document in (("/v1/traces", TRACE_JSON), ("/v1/logs", LOGS_JSON)):
                response = await client.post(path, json=document)
                assert (response.status_code, response.json()) == (200, {})
                assert response.headers["content-type"] == "application/json"
        traces, logs = ingest.stored
        assert traces.resource_spans[0].scope_spans[0].spans[0].name == "chat"
        assert logs.resource_logs[0].scope_logs[0].log_records[0].body.string_value == "hello"
        assert telemetry.requests == {("http", "accepted"): 2}

    async def test_partial_success_has_the_encoding_of_the_request(self) -> None:
        partial = Accepted(2, "two had no id")
        ingest, telemetry = RecordingIngest(partial, partial), CountingTelemetry()
        async with http_receiver(ingest, telemetry=telemetry) as where, http_client(where) as client:
            text = await client.post("/v1/traces", json=TRACE_JSON)
            binary = await client.post("/v1/traces", content=trace_request().SerializeToString(), headers=PROTOBUF)
        assert text.json() == {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "two had no id"}}
        assert ExportTraceServiceResponse.FromString(binary.content).partial_success.rejected_spans == 2
        assert telemetry.requests == {("http", "partial"): 2}

    @refusals
    async def test_ingest_errors_have_status_codes_without_content(
        self, error: Exception, outcome: str, code: grpc.StatusCode, status: int, text: str
    ) -> None:
        ingest, telemetry = RecordingIngest(error, error), CountingTelemetry()
        async with http_receiver(ingest, telemetry=telemetry) as where, http_client(where) as client:
            as_text = await client.post("/v1/traces", json=TRACE_JSON)
            as_binary = await client.post("/v1/logs", content=b"", headers=PROTOBUF)
            assert (await client.post("/v1/traces", json=TRACE_JSON)).status_code == 200  # still works
        assert as_text.status_code == as_binary.status_code == status
        assert as_text.headers.get("retry-after") == as_binary.headers.get("retry-after")
        assert as_text.headers.get("retry-after") == ("2" if outcome == "overloaded" else None)
        assert as_text.json()["code"] == code.value[0]
        assert text in as_text.json()["message"]
        assert "secret" not in as_text.text
        answer = Status.FromString(as_binary.content)
        assert (answer.code, answer.message) == (code.value[0], as_text.json()["message"])
        assert as_binary.headers["content-type"] == "application/x-protobuf"
        assert telemetry.requests == {("http", outcome): 2, ("http", "accepted"): 1}

    @pytest.mark.parametrize(
        ("headers", "content", "status", "text"),
        [
            ({"content-type": "text/plain"}, b"{}", 415, "text/plain"),
            ({}, b"{}", 415, "content-type"),
            ({**PROTOBUF, "content-encoding": "br"}, b"", 415, "gzip"),
            ({**PROTOBUF, "content-encoding": "gzip, gzip"}, b"", 415, "gzip"),
            ({**PROTOBUF, "content-encoding": "gzip"}, b"not gzip", 400, "damaged"),
            ({**PROTOBUF, "content-encoding": "zstd"}, b"not zstd", 400, "damaged"),
            ({**PROTOBUF, "content-encoding": "deflate"}, b"\xff\xff\xff", 400, "damaged"),
            ({**PROTOBUF, "content-encoding": "gzip"}, gzip.compress(b"a" * 99, mtime=0)[:-5], 400, "too early"),
            ({**PROTOBUF, "content-encoding": "zstd"}, zstandard.compress(b"a" * 99)[:-2], 400, "too early"),
            ({**PROTOBUF, "content-encoding": "deflate"}, zlib.compress(b"a" * 99)[:-2], 400, "too early"),
            ({**PROTOBUF, "content-encoding": "deflate"}, zlib.compress(b"a") + b"more", 400, "damaged"),
            ({**PROTOBUF, "content-encoding": "gzip"}, gzip.compress(b"", mtime=0) + b"more", 400, "damaged"),
            (PROTOBUF, trace_request().SerializeToString()[:-3], 400, "ExportTraceServiceRequest"),
            (JSON, b"{", 400, "not JSON"),
            (JSON, b'{"resourceSpans": 5}', 400, "resourceSpans: not an array"),
            ({"content-type": "application/json; charset=utf-8"}, b"[]", 400, "not an object"),
        ],
    )
    async def test_unreadable_requests_are_rejected_with_a_reason(
        self, headers: dict[str, str], content: bytes, status: int, text: str
    ) -> None:
        ingest, telemetry, admission = RecordingIngest(), CountingTelemetry(), Admission(1 << 20)
        door = http_receiver(ingest, telemetry=telemetry, admission=admission)
        async with door as where, http_client(where) as client:
            response = await client.post("/v1/traces", content=content, headers=headers)
        assert response.status_code == status
        assert text in response.text
        assert ingest.stored == []
        assert telemetry.requests == {("http", "malformed"): 1}
        assert admission.in_flight == 0

    async def test_unknown_paths_and_methods_are_rejected_and_extra_routes_work(self) -> None:
        async def hello(_: Request) -> PlainTextResponse:
            return PlainTextResponse("hello")

        door = http_receiver(RecordingIngest(), routes=[Route("/api/hello", hello)])
        async with door as where, http_client(where) as client:
            assert (await client.get("/v1/traces")).status_code == 405
            assert (await client.post("/v1/metrics", content=b"", headers=PROTOBUF)).status_code == 404
            assert (await client.get("/api/hello")).text == "hello"

    async def test_a_sender_that_disconnects_during_the_body_frees_its_bytes(self) -> None:
        telemetry, admission = CountingTelemetry(), Admission(1 << 20)
        async with http_receiver(RecordingIngest(), telemetry=telemetry, admission=admission) as where:
            _, writer = await asyncio.open_connection(*where)
            writer.write(HALF_A_REQUEST)
            await until(lambda: bool(admission.in_flight))
            writer.close()
            await until(lambda: bool(telemetry.requests))
        assert telemetry.requests == {("http", "malformed"): 1}
        assert admission.in_flight == 0

    async def test_stop_waits_for_running_requests(self) -> None:
        ingest = RecordingIngest()
        ingest.gate = asyncio.Event()
        app = otlp_http_app(ingest, DoorSettings(Admission(1 << 20)))
        server = HttpServer(app, LOOPBACK, setting="server.http")
        async with http_client(await server.start()) as client:
            posting = asyncio.create_task(client.post("/v1/traces", content=b"", headers=PROTOBUF))
            await until(lambda: ingest.calls == 1)
            asyncio.get_running_loop().call_later(0.2, ingest.gate.set)
            await server.stop(10)
            assert (await posting).status_code == 200

    async def test_an_incomplete_body_times_out_with_408(self) -> None:
        async with http_receiver(RecordingIngest(), body_timeout_s=0.2) as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(HALF_A_REQUEST)
            status = await reader.readline()
            writer.close()
        assert status == b"HTTP/1.1 408 Request Timeout\r\n"


class TestInternalErrors:
    async def test_internal_errors_are_logged_once_with_type_and_place_without_content(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        errors = [ValueError("secret prompt") for _ in range(5)]
        with caplog.at_level(logging.ERROR):
            async with grpc_receiver(RecordingIngest(*errors)) as where, grpc_client(where) as (traces, _):
                for _ in errors:
                    with pytest.raises(grpc.aio.AioRpcError):
                        await traces.Export(trace_request())
        (line,) = (record.getMessage() for record in caplog.records if "pandaeval" in record.name)
        assert "ValueError" in line
        assert "in traces" in line
        assert "secret" not in caplog.text


def sdk_spans(count: int) -> tuple[ReadableSpan, ...]:
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for number in range(count):
        provider.get_tracer("test").start_span(f"span {number}", attributes={"n": number}).end()
    return memory.get_finished_spans()


class TestRealExporters:
    """Python SDK exporters on their own thread."""

    async def test_grpc_exporter_retries_after_overload(self) -> None:
        ingest, telemetry = RecordingIngest(Overloaded("full", 0.1)), CountingTelemetry()
        async with grpc_receiver(ingest, telemetry=telemetry) as where:
            exporter = GrpcSpanExporter(endpoint=f"http://{where}", insecure=True, compression=grpc.Compression.Gzip)
            result = await asyncio.to_thread(exporter.export, sdk_spans(20))
            await asyncio.to_thread(exporter.shutdown)
        assert result is SpanExportResult.SUCCESS
        assert telemetry.requests == {("grpc", "overloaded"): 1, ("grpc", "accepted"): 1}
        assert len(ingest.stored[0].resource_spans[0].scope_spans[0].spans) == 20

    @pytest.mark.parametrize("refusal", [Overloaded("full"), Draining("starting")])
    async def test_http_exporter_retries_after_a_refusal(self, refusal: Exception) -> None:
        ingest = RecordingIngest(refusal)
        async with http_receiver(ingest) as where:
            endpoint = f"http://{where}/v1/traces"
            exporter = HttpSpanExporter(endpoint=endpoint, compression=Compression.Gzip)
            result = await asyncio.to_thread(exporter.export, sdk_spans(20))
            await asyncio.to_thread(exporter.shutdown)
        assert result is SpanExportResult.SUCCESS
        assert ingest.calls == 2
        assert len(ingest.stored[0].resource_spans[0].scope_spans[0].spans) == 20

    async def test_grpc_exporter_does_not_retry_a_malformed_request(self) -> None:
        ingest = RecordingIngest(Malformed("no"))
        async with grpc_receiver(ingest) as where:
            exporter = GrpcSpanExporter(endpoint=f"http://{where}", insecure=True)
            result = await asyncio.to_thread(exporter.export, sdk_spans(1))
            await asyncio.to_thread(exporter.shutdown)
        assert result is SpanExportResult.FAILURE
        assert ingest.calls == 1

    @pytest.mark.skipif("event_name" not in signature(Logger.emit).parameters, reason="needs the logs API of SDK 1.35")
    async def test_http_log_exporter_is_accepted(self) -> None:
        ingest = RecordingIngest()
        async with http_receiver(ingest) as where:
            exporter = HttpLogExporter(endpoint=f"http://{where}/v1/logs", compression=Compression.Deflate)
            provider = LoggerProvider()
            provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
            await asyncio.to_thread(lambda: provider.get_logger("test").emit(body="hello", event_name="gen_ai.choice"))
            await asyncio.to_thread(provider.shutdown)
        record = ingest.stored[0].resource_logs[0].scope_logs[0].log_records[0]
        assert (record.event_name, record.body.string_value) == ("gen_ai.choice", "hello")
