"""Bearer tokens of programs and browsers."""

from __future__ import annotations

import base64

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.otlp_http import otlp_http_app

TOKEN = "s3cret:with a colon"


def _basic(password: str, name: str = "anybody") -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


@pytest.fixture(scope="module")
def client() -> TestClient:
    async def said(_: Request) -> PlainTextResponse:
        return PlainTextResponse("here")

    methods = ["GET", "HEAD", "POST"]
    paths = ("/", "/runbook", "/api/v1/x", "/mcp")
    routes = [Route(path, said, methods=methods) for path in paths]
    return TestClient(otlp_http_app(None, DoorSettings(Admission(1 << 20), token=TOKEN), routes=routes))  # type: ignore[arg-type]


def test_pages_offer_basic_auth_and_bearer_but_mcp_and_otlp_only_bearer(client: TestClient) -> None:
    for path in ("/", "/runbook", "/api/v1/x"):
        asked = client.get(path)
        assert asked.status_code == 401
        assert asked.headers.get_list("www-authenticate") == ['Basic realm="pandaeval", charset="UTF-8"', "Bearer"]
    assert client.get("/mcp").headers.get_list("www-authenticate") == ["Bearer"]
    assert client.post("/v1/traces").headers.get_list("www-authenticate") == ["Bearer"]


@pytest.mark.parametrize("path", ["/", "/runbook", "/api/v1/x"])
def test_the_token_is_a_valid_password_for_any_user_name(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    for name in ("anybody", "", "admin"):
        assert client.get(path, headers=_basic(TOKEN, name)).status_code == 200


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic !", "Basic Og==", "Basic eA==", f"Basic {TOKEN}", f"Bearer {TOKEN}x"],
)
def test_wrong_credentials_are_rejected(client: TestClient, header: str) -> None:
    assert client.get("/", headers={"authorization": header}).status_code == 401
    assert client.get("/", headers=_basic(TOKEN[:-1])).status_code == 401
    assert client.get("/", headers=_basic("")).status_code == 401


def test_mcp_and_otlp_paths_reject_basic_auth(client: TestClient) -> None:
    assert client.get("/mcp", headers=_basic(TOKEN)).status_code == 401
    assert client.post("/v1/traces", headers=_basic(TOKEN)).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"sec-fetch-site": "cross-site"}, 401),
        ({"sec-fetch-site": "same-site"}, 401),
        ({"sec-fetch-site": "none"}, 401),
        ({"origin": "http://evil.example"}, 401),
        ({"origin": "null"}, 401),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"origin": "http://testserver"}, 200),
    ],
)
def test_a_foreign_page_cannot_post_with_the_password_of_a_browser(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    assert client.post("/api/v1/x", headers={**_basic(TOKEN), **headers}).status_code == status
    assert client.get("/api/v1/x", headers={**_basic(TOKEN), **headers}).status_code == 200
    assert client.post("/api/v1/x", headers={"authorization": f"Bearer {TOKEN}", **headers}).status_code == 200
