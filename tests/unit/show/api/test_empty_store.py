"""The HTTP listener over an empty store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import Store
from support.api import ReadInterfaces

Open = Callable[[PageWork | None], TestClient]


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Open]:
    store = Store(tmp_path, "normal")
    store.spending.reserve(1.25, None, store.spending.today(time.time())).result()
    opened: list[ReadInterfaces] = []

    def make(page: PageWork | None) -> TestClient:
        work = Work(store, judge="openai/gpt-4o-mini", daily_usd=5.0, page=page)
        opened.append(ReadInterfaces(tmp_path, work))
        return TestClient(Starlette(routes=opened[-1].routes), base_url="http://localhost")

    yield make
    for each in opened:
        each.close()
    store.close()


def test_the_page_is_served_read_only_with_its_overview(shown: Open) -> None:
    client = shown(PageWork({"Jaeger": "http://localhost:16686/trace/{trace_id}"}))
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert client.head("/").content == b""
    assert client.post("/", json={}).status_code == 404
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    overview = client.get("/api/v1/overview").json()
    assert overview["links"] == {"Jaeger": "http://localhost:16686/trace/{trace_id}"}
    assert (overview["page"], overview["spent_usd"], overview["daily_usd"]) == (True, 1.25, 5.0)
    assert overview["metrics"] == [] == overview["agents"]
    assert overview["can"] == [
        "POST /annotations",
        "POST /annotations/undo",
        "POST /delete",
        "POST /incidents/state",
        "POST /labels/draw",
    ]


def test_an_empty_store_has_an_empty_index(shown: Open) -> None:
    client = shown(PageWork({}))
    for of in ("sessions", "traces"):
        found = client.get("/api/v1/page/index", params={"of": of, "window": "1h"})
        assert found.headers["x-content-type-options"] == "nosniff"
        said = found.json()
        assert (said["traces"], said["failed"], said["next"], said["newest"]) == (0, 0, None, 0)
        assert said["index"]["order"] == []
    for path, status in (
        ("session?id=nobody's", 404),
        ("session", 422),
        (f"traces/{'0' * 32}", 404),
        ("traces/x", 400),
        ("index?window=2h", 422),
        ("index?of=spans", 422),
        ("index?cursor=nonsense", 400),
    ):
        assert client.get(f"/api/v1/page/{path}").status_code == status, path
    assert {"/page/index", "/page/session", "/page/traces/{trace_id}"} <= set(
        client.get("/api/v1/openapi.json").json()["paths"]
    )


def test_without_a_page_there_are_no_page_operations(shown: Open) -> None:
    client = shown(None)
    assert client.get("/").status_code == 404
    assert client.get("/api/v1/page/index").status_code == 404
    assert client.get("/api/v1/overview").json()["page"] is False


def test_a_deleted_store_gives_503(shown: Open, tmp_path: Path) -> None:
    client = shown(None)
    for file in tmp_path.iterdir():
        file.unlink()
    for path in ("traces", "sessions", "results", "overview", f"traces/{'0' * 32}"):
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 503, path
        assert "the store cannot be read now" in answer.json()["detail"]
