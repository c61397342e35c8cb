"""Labels over the API."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp

from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.api.writing import MOST_BYTES
from pandaeval_collector.store import DecidedTrace, JudgedRow, Store, WriteSet, people
from support.api import ReadInterfaces, asking, served

TRACE = "ab" * 16
ABOUT = {"trace_id": TRACE, "metric": "trace.tool_loop"}
PATH = "/api/v1/annotations"
KEY = "session.correctness"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ASGIApp]:
    folder = tmp_path_factory.mktemp("store")
    decide(folder, TRACE, "cd" * 16, *(f"{number:032x}" for number in range(7)))
    with served(folder, hosts=("evals.example",)) as made:
        yield made


def decide(folder: Path, *traces: str) -> None:
    """Store decided traces and the session ``s/1``."""
    decided = [DecidedTrace(bytes.fromhex(each), 1, True, "d", frozenset(), [], 0) for each in traces]
    store = Store(folder, "off")
    store.commit(WriteSet(traces=decided, touched={"s/1"})).result()
    store.close()


@pytest.fixture
async def client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(app) as made:
        yield made


async def put(client: httpx.AsyncClient, **said: Any) -> httpx.Response:
    return await client.post(PATH, json=said)


async def test_a_label_is_created_then_changed_and_can_be_read(client: httpx.AsyncClient) -> None:
    first = await put(client, **ABOUT, passed=False, annotator="ann", comment="went round\nin circles")
    assert first.status_code == 201, first.text
    changed = await put(client, **ABOUT, passed=True, annotator="ann")
    known = await put(client, **ABOUT, passed=True, annotator="ann")
    assert (changed.status_code, known.status_code) == (200, 200)
    session = await put(client, session_id="s/1", metric="agent_reliability", score=0.25, annotator="bob")
    assert session.json() | {"at": 0} == {
        "trace_id": None,
        "session_id": "s/1",
        "metric": "session.agent_reliability",
        "passed": None,
        "score": 0.25,
        "annotator": "bob",
        "comment": "",
        "at": 0,
    }
    about_it = (await client.get(PATH, params={"trace_id": TRACE, "metric": "trace.tool_loop"})).json()["items"]
    assert [(each["annotator"], each["passed"]) for each in about_it] == [("ann", True)]
    assert about_it[0]["at"] > 1_600_000_000_000


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"trace_id": "ef" * 16, "metric": "trace.tool_loop"}, "no scored agent trace has this ID"),
        ({"session_id": "s/2", "metric": "agent_reliability"}, "no session with a scored trace has this ID"),
    ],
)
async def test_a_label_on_an_unknown_run_is_rejected(
    client: httpx.AsyncClient, about: dict[str, str], told: str
) -> None:
    answer = await put(client, **about, passed=True)
    assert answer.status_code == 404
    assert told in answer.json()["detail"]
    assert (await client.get(PATH, params=about)).json()["items"] == []


async def test_undo_removes_only_the_label_of_its_annotator(client: httpx.AsyncClient) -> None:
    about = {"trace_id": "cd" * 16, "metric": "trace.tool_loop"}
    for annotator in ("ann", "bob"):
        await put(client, **about, passed=True, annotator=annotator)
    undone = await client.post(f"{PATH}/undo", json={**about, "annotator": "ann"})
    assert (undone.status_code, undone.content) == (204, b"")
    left = (await client.get(PATH, params=about)).json()["items"]
    assert [each["annotator"] for each in left] == ["bob"]
    assert (await client.post(f"{PATH}/undo", json={**about, "annotator": "ann"})).status_code == 404
    assert (await client.post(f"{PATH}/undo", json={**about, "metric": "nothing"})).status_code == 422


async def test_labels_are_listed_once_and_newest_first_over_pages(client: httpx.AsyncClient) -> None:
    for number in range(7):
        await put(client, trace_id=f"{number:032x}", metric="trace.plan_quality", passed=True, annotator="pager")
    found: list[str] = []
    parameters: dict[str, Any] = {"metric": "trace.plan_quality", "limit": 3}
    while True:
        page = (await client.get(PATH, params=parameters)).json()
        found += [each["trace_id"] for each in page["items"]]
        if page["next"] is None:
            break
        parameters["cursor"] = page["next"]
    assert found == [f"{number:032x}" for number in reversed(range(7))]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({**ABOUT}, "give passed"),
        ({**ABOUT, "score": 1.5}, "less than or equal to 1"),
        ({**ABOUT, "passed": True, "verdict": "x"}, "verdict"),
        ({"metric": "trace.tool_loop", "passed": True}, "fill in trace_id"),
        ({"trace_id": "xyz", "metric": "trace.tool_loop", "passed": True}, "32 hex digits"),
        ({"trace_id": TRACE, "metric": "trace.tool_lop", "passed": True}, "did you mean"),
        ({"trace_id": TRACE, "metric": "session.agent_reliability", "passed": True}, "session_id"),
        ({**ABOUT, "passed": True, "comment": "x" * 1001}, "1000"),
        ({**ABOUT, "passed": True, "annotator": "\ud800"}, "annotator"),
    ],
)
async def test_an_invalid_label_is_rejected_with_the_reason(
    client: httpx.AsyncClient, said: dict[str, Any], told: str
) -> None:
    answer = await client.post(PATH, content=json.dumps(said), headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert told in answer.json()["detail"]


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": ""}, 415),
        (JSON | {"origin": "https://evil.example"}, 403),
        (JSON | {"origin": "null"}, 403),
        (JSON | {"origin": "http://127.0.0.1:9999"}, 403),
        (JSON | {"origin": "http://[bad"}, 403),
        (JSON | {"sec-fetch-site": "cross-site"}, 403),
        (JSON | {"sec-fetch-site": "same-site"}, 403),
        (JSON | {"origin": "http://127.0.0.1:4328", "sec-fetch-site": "same-origin"}, 200),
        (JSON | {"origin": "https://evals.example"}, 200),
        (JSON, 200),
        (JSON | {"host": "evil.example"}, 421),
    ],
)
async def test_cross_origin_writes_are_rejected(
    client: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    body = b'{"trace_id": "%s", "metric": "trace.confidence", "passed": true}' % TRACE.encode()
    await client.post(PATH, content=body, headers=JSON)
    answer = await client.post(PATH, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert (await client.get(PATH, headers={"origin": "https://evil.example"})).status_code == 200


async def test_a_too_large_body_is_rejected_before_it_is_read_completely(client: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * MOST_BYTES:
            sent += 8192
            yield b"[" * 8192
            await asyncio.sleep(0)

    answer = await client.post(PATH, content=endless(), headers=JSON)
    assert answer.status_code == 413
    assert sent <= MOST_BYTES + 2 * 8192
    deep = await client.post(PATH, content=b"[" * (MOST_BYTES - 1), headers=JSON)
    assert deep.status_code in (400, 422)


async def test_a_label_that_cannot_be_stored_gives_503(tmp_path: Path) -> None:
    decide(tmp_path, TRACE)
    with served(tmp_path) as app:
        with sqlite3.connect(tmp_path / "pandaeval.db") as database:
            database.execute(
                "CREATE TRIGGER full BEFORE INSERT ON people_labels BEGIN SELECT RAISE(ABORT, 'full'); END"
            )
        database.close()
        async with asking(app) as client:
            answer = await put(client, **ABOUT, passed=False)
    assert answer.status_code == 503
    assert "try again" in answer.json()["detail"]


async def test_a_draw_is_repeatable_until_a_label_is_added_and_stores_its_probabilities(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    rows = [JudgedRow(f"s{at}", KEY, "", "desk", at / 100, at > 50, 0.5, "m", "1", 1.0) for at in range(100)]
    store.commit(WriteSet(judged=rows)).result()
    lookouts = ReadInterfaces(tmp_path, Work(store))
    async with asking(Starlette(routes=lookouts.routes)) as client:
        asked = {"metric": "session.correctness", "count": 10}
        [first, again] = [(await client.post("/api/v1/labels/draw", json=asked)).json() for _ in range(2)]
        assert first == again
        assert (len(first["items"]), first["labelled"], first["waiting"]) == (10, 0, 100)
        session = first["items"][0]["session_id"]
        await client.post(PATH, json={"session_id": session, "metric": KEY, "passed": True, "annotator": "ann"})
        [label] = people.labels(store.reads.connection())
        assert label.probability == pytest.approx(first["items"][0]["probability"])
        following = (await client.post("/api/v1/labels/draw", json=asked)).json()
        assert (following["labelled"], session in str(following["items"])) == (1, False)
        none = (await client.post("/api/v1/labels/draw", json=asked | {"agent": "nobody"})).json()
        assert none["items"] == []
        assert (await client.post("/api/v1/labels/draw", json={"metric": "nothing"})).status_code == 422
        assert (await client.post("/api/v1/labels/draw", json=asked | {"count": 0})).status_code == 422
    lookouts.close()
    store.close()
