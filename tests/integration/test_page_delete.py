"""Data deleted on the page, after a confirmation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import Store
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.versions import RUNS, fill, trace_id

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
SESSION = "session-2-79"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = fill(tmp_path)
    yield made
    made.close()


@pytest.fixture
def address(store: Store) -> Iterator[str]:
    lookouts = ReadInterfaces(store.path, Work(store, page=PageWork({})))
    with serve_on_port(Starlette(routes=lookouts.routes)) as url:
        yield url
    lookouts.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        assert opened.complaints == []


def _press(page: Page, name: str, until: str) -> None:
    buttons = "[...document.querySelectorAll('.deleting button')]"
    page.run(f"{buttons}.find((each) => each.textContent === '{name}').click()")
    page.wait(f"document.querySelector('.deleting').textContent.includes('{until}')")


def _traces(address: str) -> int:
    return int(httpx.get(f"{address}/api/v1/page/index?of=traces&limit=1&window=all", timeout=30).json()["traces"])


def test_a_session_is_deleted_on_the_page_after_preview_and_confirmation(page: Page, address: str) -> None:
    page.visit(f"{address}/#/session/{SESSION}")
    page.click(".deleting summary")
    assert page.texts(".deleting option") == [f"session {SESSION}", "all runs before 2023-11-16 (UTC)"]
    _press(page, "Show the data", "Delete this data?")
    assert {"1 trace", "4 results"} <= set(page.texts(".deleting li"))
    _press(page, "Cancel", "Show the data")
    assert _traces(address) == sum(RUNS.values())
    page.run("document.querySelector('.deleting input').value = 'kim'")
    _press(page, "Show the data", "Delete this data?")
    _press(page, "Delete", "Deleted.")
    assert _traces(address) == sum(RUNS.values()) - 1
    assert httpx.get(f"{address}/api/v1/sessions/{SESSION}", timeout=30).status_code == 404
    page.go("#/sessions?window=all")
    assert SESSION not in page.text("main")


def test_old_runs_can_be_deleted_on_the_page_of_a_trace(page: Page, address: str) -> None:
    page.visit(f"{address}/#/trace/{trace_id('2', 0)}")
    page.click(".deleting summary")
    page.run("document.querySelector('.deleting select').value = 'before'")
    _press(page, "Show the data", "Delete this data?")
    assert f"{RUNS['1']} traces" in page.texts(".deleting li")
    _press(page, "Delete", "Deleted.")
    assert _traces(address) == RUNS["2"]
    page.run("document.querySelector('.deleting select').dispatchEvent(new Event('change'))")
    _press(page, "Show the data", "No stored data match.")
