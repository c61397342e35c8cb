"""OTLP/HTTP without a token rejects foreign pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest
from starlette.testclient import TestClient

from pandaeval_collector.base.untrusted.foreign_pages import is_known_host
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address
from pandaeval_collector.receivers.health import health_app
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from support.receivers import CountingTelemetry, RecordingIngest, http_receiver

OURS = ["localhost", "LOCALHOST:4328", "localhost.:4328", "a.localhost", "127.0.0.1:80", "[::1]", "[::1]:4328"]
OURS += ["Evals.Example", "evals.example:443", "192.168.0.7:4328"]
OTHERS = ["", "evil.example", "[::1].evil.example", "[::1]evil.example", "localhost:80@evil.example"]
OTHERS += ["localhost@evil.example", "localhost/evil.example", "evil.example#localhost", "localhost:4328:80"]
OTHERS += ["127.0.0.1.evil.example", "localhost.evil.example", "[localhost]", "localhost:x", "localhost evil.example"]
OTHERS += ["[::1", "::1]", "::1", "localhost, evil.example", "evals.example.evil.example", "[::1%evil.example]"]


@pytest.mark.parametrize("host", OURS)
def test_local_and_allowed_hosts_are_known(host: str) -> None:
    assert is_known_host(host, {"evals.example"})


@pytest.mark.parametrize("host", OTHERS)
def test_other_and_malformed_hosts_are_unknown(host: str) -> None:
    assert not is_known_host(host, {"evals.example"})


TELEMETRY = CountingTelemetry()


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = otlp_http_app(
        RecordingIngest(), DoorSettings(Admission(1 << 20), telemetry=TELEMETRY), hosts=("Evals.example",)
    )
    with TestClient(app, base_url="http://localhost:4328") as found:
        yield found


def _status(client: TestClient, path: str, headers: dict[str, str]) -> int:
    answer = client.post(path, json={}, headers=headers)
    assert answer.status_code == 200 or "server.allowed_hosts" in answer.json()["message"]
    return int(answer.status_code)


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_a_foreign_page_cannot_send_spans_or_logs(client: TestClient, path: str) -> None:
    before = TELEMETRY.requests["http", "unauthenticated"]
    for host in ("evil.example", "[::1].evil.example", "localhost:80@evil.example"):
        assert _status(client, path, {"host": host}) == 421
        assert _status(client, path, {"host": host, "origin": f"http://{host}"}) == 421
    for origin in ("https://evil.example", "null", "http://localhost:3000", "http://localhost:4328@evil.example"):
        assert _status(client, path, {"origin": origin}) == 403
    assert _status(client, path, {"sec-fetch-site": "cross-site"}) == 403
    assert TELEMETRY.requests["http", "unauthenticated"] == before + 11


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_local_programs_and_pages_can_send_spans_and_logs(client: TestClient, path: str) -> None:
    for host in ("localhost:4328", "127.0.0.1:4328", "[::1]:4328", "evals.example"):
        assert _status(client, path, {"host": host}) == 200
        assert _status(client, path, {"host": host, "origin": f"http://{host}"}) == 200
    assert _status(client, path, {"origin": "https://evals.example"}) == 200


def test_without_a_list_of_hosts_any_host_and_origin_is_accepted() -> None:
    for token in (None, "secret"):
        app = otlp_http_app(RecordingIngest(), DoorSettings(Admission(1 << 20), token=token))
        with TestClient(app, base_url="http://pandaeval:4328") as client:
            headers = {"authorization": "Bearer secret", "origin": "https://elsewhere.example"}
            assert client.post("/v1/traces", json={}, headers=headers).status_code == 200


@pytest.mark.parametrize("hosts", [None, ()])
async def test_a_request_with_two_host_headers_is_rejected(hosts: tuple[str, ...] | None) -> None:
    ingest = RecordingIngest()
    async with http_receiver(ingest, hosts=hosts) as where:
        assert await _answered(where, ["localhost"]) == 200
        assert await _answered(where, ["localhost", "evil.example"]) == 400
        assert await _answered(where, ["localhost", "localhost"]) == 400
    assert ingest.calls == 1


@pytest.mark.parametrize("host", ["evil.example", "[::1].evil.example", "localhost:80@evil.example"])
def test_a_foreign_page_cannot_read_metrics_if_hosts_are_listed(host: str) -> None:
    for hosts, status in ((("Evals.example",), 421), (None, 200)):
        with TestClient(health_app(dict, _metrics, hosts=hosts), base_url="http://localhost:4329") as client:
            assert client.get("/metrics", headers={"host": host}).status_code == status
            assert client.get("/metrics", headers={"host": "evals.example:4329"}).text == "# none"
            assert client.get("/healthz", headers={"host": host}).status_code == 200


def _metrics(accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
    async def body() -> AsyncGenerator[bytes, None]:
        yield b"# none"

    return "text/plain", body()


async def _answered(where: Address, hosts: list[str]) -> int:
    reader, writer = await asyncio.open_connection(*where)
    named = "".join(f"Host: {host}\r\n" for host in hosts)
    head = f"POST /v1/traces HTTP/1.1\r\n{named}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    writer.write(head.encode() + b"{}")
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])
