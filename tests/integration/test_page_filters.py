"""Filters of the page in a real Chromium: known values to choose from, and errors at their field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.versions import RUNS, fill

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
_CHOOSE = (
    "((field) => {{ field.value = '{value}'; field.dispatchEvent(new Event('change')); }})"
    "(document.getElementById('by-{name}'))"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("versions")
    store = fill(folder)
    lookouts = ReadInterfaces(folder, Work(store, page=PageWork({})))
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


def test_filters_offer_known_versions_environments_and_users(page: Page, address: str) -> None:
    page.visit(f"{address}/#/traces?window=all")
    values = "[...document.querySelectorAll('#by-{} option')].map(({{ value }}) => value)"
    assert page.run(values.format("version")) == ["", "2", "1"], "newest first"
    assert page.run(values.format("environment")) == ["", "env-1", "env-2"]
    assert page.run("[...document.querySelectorAll('#users option')].map(({ value }) => value)") == ["mia"]
    assert page.run("document.getElementById('by-user').getAttribute('list')") == "users"


def test_version_and_attribute_filters_can_be_combined_and_removed_separately(page: Page, address: str) -> None:
    page.visit(f"{address}/#/traces?window=all&attribute=tier%3Dgold")
    page.run(_CHOOSE.format(name="version", value="1"))
    page.wait("location.hash.includes('service.version%3D1')")
    assert page.run("new URLSearchParams(location.hash.split('?')[1]).getAll('attribute')") == [
        *("tier=gold", "service.version=1")
    ]
    assert page.run("document.getElementById('by-attribute').value") == "tier=gold"
    page.run(_CHOOSE.format(name="attribute", value=""))
    page.wait("!location.hash.includes('gold')")
    page.wait(f"document.querySelector('.top').innerText.includes('{RUNS['1']} ')")
    page.run(_CHOOSE.format(name="version", value=""))
    page.wait("!location.hash.includes('service.version')")
    page.complaints.clear()  # the browser reports the status 422 of the unknown attribute


@pytest.mark.parametrize(
    ("kind", "query", "field", "message"),
    [
        ("traces", "attribute=gold", "attribute", "write key=value, such as service.version=1.4"),
        ("traces", "agent=desc", "agent", "there is no desc; did you mean desk?"),
        ("failures", "environment=env-3", "environment", "there is no env-3"),
        ("sessions", "min_seconds=-1", "min_seconds", "must be greater than or equal to 0"),
        ("agents", "metric=tool_lop", "metric", "tool_lop: unknown metric; did you mean tool_loop?"),
        ("", "service=shopp", "service", "there is no shopp; did you mean shop?"),
    ],
)
def test_a_filter_error_is_shown_at_its_field(
    page: Page, address: str, kind: str, query: str, field: str, message: str
) -> None:
    page.visit(f"{address}/#/{kind}?window=all&{query}")
    assert page.text("[role=alert]").startswith(message)
    assert page.run("document.querySelector('[aria-invalid]').id") == f"by-{field}"
    assert page.run("document.querySelector('[role=alert]').parentElement.querySelector('[aria-invalid]') !== null")
    assert page.run("document.querySelector('[aria-invalid]').value") == query.partition("=")[2]
    page.run(_CHOOSE.format(name=field, value=""))
    page.wait("document.querySelector('[role=alert]') === null")
    page.complaints.clear()  # the browser reports the status 422


def test_an_attribute_without_a_value_is_not_sent(page: Page, address: str) -> None:
    page.visit(f"{address}/#/traces?window=all")
    page.requests.clear()
    page.run(_CHOOSE.format(name="attribute", value="gold"))
    assert page.run("document.getElementById('by-attribute').validity.patternMismatch")
    assert (page.run("location.hash"), page.requests) == ("#/traces?window=all", [])


@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_with_an_error_fits_its_width(page: Page, address: str, width: int) -> None:
    page.resize(width, 900)
    page.visit(f"{address}/#/traces?window=all&attribute=gold")
    assert page.run("document.documentElement.scrollWidth") == width
    page.complaints.clear()
