"""Two versions beside each other in a real Chromium: each number links to that many rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.work import PageWork, Work
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.linked_counts import differences, walked
from support.versions import GROUPS, LOOPS, RUNS, fill

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
_LINKS = "[...document.querySelectorAll('{}')].map(({{ href, innerText }}) => [href, innerText])"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("versions")
    store = fill(folder)
    work = Work(store, page=PageWork({}), metrics=lambda: [(metric, 0.5) for metric in registry(()).values()])
    lookouts = ReadInterfaces(folder, work)
    with serve_on_port(Starlette(routes=lookouts.routes)) as url:
        yield url
    lookouts.close()
    store.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        assert opened.complaints == []


def test_every_number_of_the_comparison_links_to_that_many_rows(page: Page, address: str) -> None:
    page.visit(f"{address}/#/comparison")
    assert page.run("[...document.querySelectorAll('select')].map(({ id, value }) => `${id} ${value}`)") == [
        *("a-window ", "a-version 1", "a-environment ", "b-window ", "b-version 2", "b-environment ")
    ], "the newest and the previous version must be selected"
    assert "79 %" in page.text("table.compared")
    assert "−30 points" in page.text("table.compared")
    links = [link for link in walked(page, address) if not link.address.startswith("#/session/")]
    assert differences(page, links) == []
    assert sum(link.page.startswith("#/comparison") and link.count is not None for link in links) == 2 + 18 + 6


def test_incidents_from_several_response_pages_are_all_listed(page: Page, address: str) -> None:
    page.visit(f"{address}/#/?window=all")
    page.run("(({ fetch }) => { window.fetch = (path) => fetch(path.replace('limit=500', 'limit=1')); })(window)")
    page.go("#/failures?window=all&state=all")
    assert page.count(".incident") == len(GROUPS)


def test_an_export_has_the_filters_of_the_view(page: Page, address: str) -> None:
    page.visit(f"{address}/#/traces?window=all&attribute=service.version%3D2&metric=trace.tool_loop&failed=1")
    page.run("document.querySelector('.exporting').open = true")
    links = page.run(_LINKS.format(".exporting a"))
    assert [text for _, text in links] == ["JSON lines", "CSV", "Spans (OTLP)"]
    text = page.run(f"fetch({links[0][0]!r}).then((answer) => answer.text())")
    assert text.count("\n") == LOOPS["2"]
    assert "--where 'metric=trace.tool_loop,attribute=service.version=2,success=false'" in page.text(".exporting")


def test_a_selected_environment_is_kept_in_the_address(page: Page, address: str) -> None:
    page.visit(f"{address}/#/comparison?a.environment=env-1&b.environment=env-2")
    assert f"a: {RUNS['1']} runs, b: {RUNS['2']} runs" in page.text("main")
    page.run(
        "((field) => { field.value = 'env-2'; field.dispatchEvent(new Event('change')); })"
        "(document.getElementById('a-environment'))"
    )
    page.wait("document.querySelector('main').innerText.includes('a: 80 runs, b: 80 runs')")
    assert "a.environment=env-2" in page.run("location.hash")
    assert "No incident is new" in page.text("main")


def test_an_unknown_name_is_explained_below_the_form(page: Page, address: str) -> None:
    page.visit(f"{address}/#/comparison?a.agent=dusk")
    assert page.text("[role=alert]") == "agent: there is no dusk; did you mean desk?"
    assert page.count("select") > 2
    page.complaints.clear()  # the browser reports the status 422


@pytest.mark.parametrize("width", [390, 1280])
def test_the_comparison_page_fits_its_width(page: Page, address: str, width: int) -> None:
    page.resize(width, 900)
    page.visit(f"{address}/#/comparison")
    assert page.run("document.documentElement.scrollWidth") == width
