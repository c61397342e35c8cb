"""Every API operation needs the token or a local host name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp

from support.api import asking, served

TOKEN = "a long and secret token"
BODY = {"trace_id": "ab" * 16, "metric": "trace.tool_loop", "passed": True}
OURS = ("127.0.0.1:4328", "localhost:4328", "[::1]:4328", "evals.example")
OTHERS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:4328",
    "[::1].evil.example",
    "localhost:80@evil.example",
    "",
)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ASGIApp]:
    with served(tmp_path_factory.mktemp("locked"), token=TOKEN) as app:
        yield app


@pytest.fixture(scope="module")
def open_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ASGIApp]:
    with served(tmp_path_factory.mktemp("open"), hosts=("evals.example",)) as app:
        yield app


async def operations(app: ASGIApp, headers: dict[str, str]) -> list[tuple[str, str]]:
    """Return method and address of every operation."""
    async with asking(app) as client:
        document = (await client.get("/api/v1/openapi.json", headers=headers)).json()
    found = [("GET", "/api/v1/openapi.json"), ("GET", "/api/v1/nothing"), ("GET", "/mcp")]
    for path, methods in document["paths"].items():
        real = path.replace("{trace_id}", "ab" * 16).replace("{session_id}", "nobody")
        found += [(method.upper(), f"/api/v1{real}") for method in methods]
    assert len(found) > 8
    return found


async def statuses(app: ASGIApp, headers: dict[str, str], of: list[tuple[str, str]]) -> set[int]:
    async with asking(app) as client:
        found = set()
        for method, path in of:
            body: dict[str, Any] = {} if method == "GET" else {"json": BODY}
            found.add((await client.request(method, path, headers=headers, **body)).status_code)
        return found


HEARD = {200, 201, 404, 405, 422}
"""Statuses of authenticated requests."""
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN])
async def test_every_operation_requires_the_right_token(locked: ASGIApp, given: str) -> None:
    every = await operations(locked, BEARER)
    headers = {"authorization": given} if given else {}
    assert await statuses(locked, headers, every) == {401}


async def test_the_token_gives_access_under_any_host_name(locked: ASGIApp) -> None:
    every = await operations(locked, BEARER)
    for host in ("127.0.0.1:4328", "evals.example"):
        assert await statuses(locked, BEARER | {"host": host}, every) <= HEARD


async def test_without_a_token_only_local_or_configured_host_names_are_served(open_: ASGIApp) -> None:
    every = await operations(open_, {})
    for host in OURS:
        assert await statuses(open_, {"host": host}, every) <= HEARD, host
    for host in OTHERS:
        assert await statuses(open_, {"host": host}, every) == {421}, host
