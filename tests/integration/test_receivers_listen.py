"""Addresses, tokens, TLS, ports and health of the receivers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import (
    Address,
    BindError,
    InsecureBind,
    PortInUse,
    Tls,
    check_bind,
    parse_address,
)
from pandaeval_collector.receivers.health import health_app
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.server import HttpServer
from support.certificates import make_certificates
from support.receivers import (
    LOOPBACK,
    CountingTelemetry,
    RecordingIngest,
    grpc_client,
    grpc_receiver,
    http_client,
    http_receiver,
    trace_request,
)

PROTOBUF = {"content-type": "application/x-protobuf"}
TLS = Tls(cert="server.pem", key="server.key")
MTLS = Tls(cert="server.pem", key="server.key", client_ca="ca.pem")


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "host", "port", "loopback"),
        [
            ("127.0.0.1:4327", "127.0.0.1", 4327, True),
            ("127.8.8.8:1", "127.8.8.8", 1, True),
            ("[::1]:4327", "::1", 4327, True),
            ("localhost:0", "localhost", 0, True),
            ("LOCALHOST:65535", "LOCALHOST", 65535, True),
            ("0.0.0.0:4327", "0.0.0.0", 4327, False),
            ("[::]:4327", "::", 4327, False),
            ("collector.example:4327", "collector.example", 4327, False),
        ],
    )
    def test_valid_addresses_are_parsed(self, text: str, host: str, port: int, loopback: bool) -> None:
        address = parse_address(f" {text} ")
        assert address == (host, port)
        assert str(address) == text
        assert address.is_loopback is loopback

    @pytest.mark.parametrize(
        "text", ["", "4327", ":4327", "localhost", "localhost:", "::1:4327", "a:-1", "a:65536", "a:1e3", "a:١"]
    )
    def test_invalid_addresses_are_rejected(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"port|brackets"):
            parse_address(text)

    @pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
    @pytest.mark.parametrize(("tls", "token"), [(None, None), (TLS, "t")])
    def test_loopback_addresses_need_neither_tls_nor_token(self, host: str, tls: Tls | None, token: str | None) -> None:
        check_bind(Address(host, 1), tls, token, False)

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "collector.example"])
    @pytest.mark.parametrize(
        ("tls", "token", "cures"),
        [
            (None, None, ["server.tls", "server.token_env"]),
            (None, "t", ["server.tls"]),
            (TLS, None, ["server.token_env"]),
            (TLS, "t", []),
            (MTLS, None, []),
            (MTLS, "t", []),
        ],
    )
    def test_external_addresses_need_tls_and_a_token_or_client_certificates(
        self, host: str, tls: Tls | None, token: str | None, cures: list[str]
    ) -> None:
        address = Address(host, 4327)
        check_bind(address, tls, token, True)
        if not cures:
            check_bind(address, tls, token, False)
            return
        with pytest.raises(InsecureBind) as raised:
            check_bind(address, tls, token, False, setting="server.grpc")
        message = str(raised.value)
        for expected in ("server.grpc", str(address), "insecure_bind", *cures):
            assert expected in message
        assert ("set server.tls" in message) == ("server.tls" in cures)


class TestBinding:
    async def test_a_port_in_use_is_reported_with_its_setting(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = Address(*taken.getsockname())
            doors = {
                "server.grpc": OtlpGrpcServer(RecordingIngest(), DoorSettings(Admission(1)), address),
                "server.http": HttpServer(PlainTextResponse("x"), address, setting="server.http"),
            }
            for setting, door in doors.items():
                with pytest.raises(PortInUse) as raised:
                    await door.start()
                assert str(address) in str(raised.value)
                assert setting in str(raised.value)
                await door.stop(1)

    async def test_a_second_collector_cannot_use_the_same_ports(self) -> None:
        async with grpc_receiver(RecordingIngest()) as grpc_at, http_receiver(RecordingIngest()) as http_at:
            for second in (
                OtlpGrpcServer(RecordingIngest(), DoorSettings(Admission(1)), grpc_at),
                HttpServer(PlainTextResponse("x"), http_at, setting="server.http"),
            ):
                with pytest.raises(PortInUse):
                    await second.start()

    async def test_an_address_of_another_machine_is_a_bind_error(self) -> None:
        elsewhere = Address("192.0.2.1", 4327)
        for door in (
            OtlpGrpcServer(RecordingIngest(), DoorSettings(Admission(1)), elsewhere),
            HttpServer(PlainTextResponse("x"), elsewhere, setting="server.grpc"),
        ):
            with pytest.raises(BindError, match=r"192\.0\.2\.1:4327.*server\.grpc") as raised:
                await door.start()
            assert not isinstance(raised.value, PortInUse)

    async def test_the_port_is_free_after_a_stop(self) -> None:
        async with http_receiver(RecordingIngest()) as where, http_client(where) as client:
            await client.get("/")
        server = HttpServer(PlainTextResponse("again"), where, setting="server.http")
        assert await server.start() == where
        await server.stop(1)
        await server.stop(1)


class TestToken:
    @pytest.mark.parametrize(
        ("header", "welcome"),
        [
            ("Bearer s3cret", True),
            ("bearer s3cret", True),
            ("Bearer wrong", False),
            ("Bearer s3cret2", False),
            ("Bearer", False),
            ("Basic s3cret", False),
            ("s3cret", False),
            (None, False),
        ],
    )
    async def test_grpc_and_http_accept_only_the_configured_token(
        self, header: str | None, welcome: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def hello(_: Request) -> PlainTextResponse:
            return PlainTextResponse("hello")

        ingest, telemetry = RecordingIngest(), CountingTelemetry()
        headers = {} if header is None else {"authorization": header}
        async with (
            grpc_receiver(ingest, telemetry=telemetry, token="s3cret") as grpc_at,
            http_receiver(ingest, telemetry=telemetry, token="s3cret", routes=[Route("/api", hello)]) as http_at,
            grpc_client(grpc_at) as (traces, _),
            http_client(http_at, headers=headers) as client,
        ):
            code = await traces.Export(trace_request(), metadata=tuple(headers.items())).code()
            exported = await client.post("/v1/traces", content=b"", headers=PROTOBUF)
            further = await client.get("/api")
        if welcome:
            assert code is grpc.StatusCode.OK
            assert (exported.status_code, further.text) == (200, "hello")
        else:
            assert code is grpc.StatusCode.UNAUTHENTICATED
            assert exported.status_code == further.status_code == 401
            assert exported.headers["www-authenticate"] == "Bearer"
            assert further.json()["code"] == grpc.StatusCode.UNAUTHENTICATED.value[0]
            assert ingest.calls == 0
            assert telemetry.requests == {("grpc", "unauthenticated"): 1, ("http", "unauthenticated"): 2}
        assert "s3cret" not in caplog.text


def test_an_empty_token_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        DoorSettings(Admission(1), token="")
    with pytest.raises(InsecureBind):
        check_bind(Address("0.0.0.0", 1), TLS, "", False)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


class TestTls:
    @pytest.mark.parametrize("mutual", [False, True])
    async def test_grpc_needs_tls_and_with_a_client_ca_a_client_certificate(
        self, certificates: Path, mutual: bool
    ) -> None:
        ca, cert, key = (certificates.joinpath(n).read_bytes() for n in ("ca.pem", "client.pem", "client.key"))
        anonymous, known = grpc.ssl_channel_credentials(ca), grpc.ssl_channel_credentials(ca, key, cert)
        async with grpc_receiver(RecordingIngest(), tls=tls_in(certificates, mutual)) as where:
            for credentials, welcome in ((known, True), (anonymous, not mutual)):
                async with grpc.aio.secure_channel(f"localhost:{where.port}", credentials) as channel:
                    code = await TraceServiceStub(channel).Export(trace_request(), timeout=60).code()
                    assert code is (grpc.StatusCode.OK if welcome else grpc.StatusCode.UNAVAILABLE)
            async with grpc_client(where) as (traces, _):
                assert await traces.Export(trace_request(), timeout=60).code() is grpc.StatusCode.UNAVAILABLE

    @pytest.mark.parametrize("mutual", [False, True])
    async def test_http_with_a_client_ca_needs_a_client_certificate(self, certificates: Path, mutual: bool) -> None:
        async with http_receiver(RecordingIngest(), tls=tls_in(certificates, mutual)) as where:
            for known in (True, False):
                context = ssl.create_default_context(cafile=certificates / "ca.pem")
                if known:
                    context.load_cert_chain(certificates / "client.pem", certificates / "client.key")
                assert await greeted(where, context) == (known or not mutual)

    @pytest.mark.parametrize("broken", ["missing.pem", "ca.key"])
    async def test_unusable_certificate_files_are_named(self, certificates: Path, broken: str) -> None:
        tls = Tls(cert=str(certificates / broken), key=str(certificates / "server.key"))
        no_ca = tls_in(certificates, mutual=False).model_copy(update={"client_ca": str(certificates / broken)})
        for unusable in (tls, no_ca):
            for door in (
                OtlpGrpcServer(RecordingIngest(), DoorSettings(Admission(1)), LOOPBACK, tls=unusable),
                HttpServer(PlainTextResponse("x"), LOOPBACK, setting="server.http", tls=unusable),
            ):
                with pytest.raises(BindError, match=broken):
                    await door.start()


def tls_in(folder: Path, mutual: bool) -> Tls:
    return Tls(
        cert=str(folder / "server.pem"),
        key=str(folder / "server.key"),
        client_ca=str(folder / "ca.pem") if mutual else None,
    )


async def greeted(where: Address, context: ssl.SSLContext) -> bool:
    """Return whether HTTP over TLS is answered."""
    try:
        reader, writer = await asyncio.open_connection(where.host, where.port, ssl=context)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        line = await reader.readline()
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return False
    return line.startswith(b"HTTP/1.1 415")


class TestHttpServer:
    @pytest.mark.parametrize(
        "head",
        [
            b"x: " + b"a" * 1_000_000,
            b"".join(b"x%d: %s\r\n" % (number, b"a" * 100) for number in range(10_000)),
        ],
    )
    async def test_endless_headers_are_rejected(self, head: bytes) -> None:
        async with http_receiver(RecordingIngest()) as where:
            reader, writer = await asyncio.open_connection(*where)
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n" + head)
            try:
                status = await reader.readline()
            except ConnectionError:
                status = b""  # closed during the write
            writer.close()
            assert status in (b"", b"HTTP/1.1 400 Bad Request\r\n")
            async with http_client(where) as client:
                assert (await client.get("/")).status_code == 404

    async def test_a_very_long_path_is_rejected(self) -> None:
        async with http_receiver(RecordingIngest()) as where, http_client(where) as client:
            assert (await client.get("/" + "a" * 60_000)).status_code == 400

    async def test_large_headers_and_bodies_are_accepted_on_one_connection(self) -> None:
        ingest, body = RecordingIngest(), trace_request(text="a" * 500_000).SerializeToString()
        async with http_receiver(ingest) as where, http_client(where) as client:
            for _ in range(3):
                response = await client.post("/v1/traces", content=body, headers={**PROTOBUF, "x": "y" * 8_000})
                assert response.status_code == 200
        assert len(ingest.stored) == 3

    async def test_responses_have_no_server_header(self) -> None:
        async with http_receiver(RecordingIngest()) as where, http_client(where) as client:
            assert "server" not in (await client.get("/")).headers


class TestHealth:
    async def test_health_readiness_and_metrics_endpoints(self) -> None:
        stages = {"store": True, "pipeline": False}

        async def body(accept: str) -> AsyncGenerator[bytes, None]:
            yield b"# "
            yield accept.encode()

        def metrics(accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
            return "text/plain; version=0.0.4", body(accept)

        app = health_app(lambda: stages, metrics)
        server = HttpServer(app, LOOPBACK, setting="server.health")
        async with http_client(await server.start()) as client:
            assert (await client.get("/healthz")).status_code == 200
            waiting = await client.get("/readyz")
            assert (waiting.status_code, waiting.json()) == (503, stages)
            stages["pipeline"] = True
            assert (await client.get("/readyz")).status_code == 200
            stages.clear()
            assert (await client.get("/readyz")).status_code == 503
            scrape = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})
            assert scrape.content == b"# application/openmetrics-text"
            assert scrape.headers["content-type"] == "text/plain; version=0.0.4"
            assert (await client.post("/healthz")).status_code == 405
        await server.stop(1)


async def test_grpc_continues_after_http_has_stopped() -> None:
    ingest = RecordingIngest()
    async with grpc_receiver(ingest) as where, grpc_client(where) as (traces, _):
        async with http_receiver(ingest) as http_at, http_client(http_at) as client:
            assert (await client.post("/v1/traces", content=b"", headers=PROTOBUF)).status_code == 200
        assert await traces.Export(trace_request()) == ExportTraceServiceResponse()
