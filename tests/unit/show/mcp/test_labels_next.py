"""Runs for people to label next, over the API and by the tool: those that the command draws, without the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from mcp.server.mcpserver.exceptions import ToolError
from starlette.types import ASGIApp

from pandaeval_collector.labels.queue import draw
from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.mcp.server import server
from support.api import served
from support.database import open_database
from support.judged_store import METRIC, filled

URL = "http://127.0.0.1:4328/api/v1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("store")
    with closing(filled(made)):
        return made


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[ASGIApp]:
    with served(folder) as made:
        yield made


def _client(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL)


async def test_they_are_those_that_the_command_draws(app: ASGIApp, folder: Path) -> None:
    async with _client(app) as client:
        answer = await client.post("/labels/next", json={"n": 7})
        found = answer.json()
        told = str(await server(Asker(client, "here")).call_tool("labels_next", {"limit": 7}))
    with open_database(folder / "pandaeval.db") as connection:
        queue = draw(connection, METRIC, "", 7, 1.0)
    assert [each["trace_id"] for each in found["items"]] == [each.run.unit for each in queue.drawn]
    assert (found["metric"], found["waiting"], found["labelled"]) == (METRIC, 280, 120)
    assert set(found["items"][0]) == {"trace_id", "session_id", "agent", "probability"}, "and no verdict"
    assert all(each.run.unit in told for each in queue.drawn)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"metric": "nothing"}, "metric nothing: "),
        ({"metric": "trace.confidence"}, "there are those of"),
        ({"n": 0}, "n"),
    ],
)
async def test_what_cannot_be_drawn_is_told(app: ASGIApp, asked: dict[str, object], told: str) -> None:
    async with _client(app) as client:
        answer = await client.post("/labels/next", json=asked)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]


async def test_nobody_is_left(app: ASGIApp) -> None:
    async with _client(app) as client:
        tools = server(Asker(client, "here"))
        assert "Nothing to label" in str(await tools.call_tool("labels_next", {"agent": "nobody"}))
        with pytest.raises(ToolError, match="there are those of"):
            await tools.call_tool("labels_next", {"metric": "trace.confidence"})
