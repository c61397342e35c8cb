"""Marks on the page's charts where the measurement changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.measured import Measured, fill

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
OLD = Measured("desk")
NEW = Measured("desk", "2+a1b2c3", loop="2")
_LINES = """(() => {
  const canvas = document.querySelector('.plot canvas'), { width, height } = canvas, found = new Set();
  const ink = getComputedStyle(document.body).color.match(/\\d+/g).map(Number);
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  for (let x = 0; x < width; x++) {
    let count = 0;
    for (let at = 4 * x; at < data.length; at += 4 * width)
      count += data[at + 3] > 200 && ink.every((part, of) => Math.abs(part - data[at + of]) < 60);
    if (count > height / 5) found.add(Math.round(10 * x / width));
  }
  return [...found];
})()"""
"""The places of vertical lines in the colour of text, in tenths of the chart's width."""


@contextmanager
def _served(folder: Path, *runs: Measured) -> Iterator[str]:
    store = fill(folder, runs)
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


@pytest.mark.parametrize("address", ["#/?window=all", "#/failures?window=all"])
@pytest.mark.parametrize("is_dark", [False, True])
def test_measurement_changes_are_marked_on_the_chart_and_listed(
    page: Page, tmp_path: Path, address: str, is_dark: bool
) -> None:
    page.dark(is_dark)
    with _served(tmp_path, *[OLD] * 20, *[NEW] * 20) as url:
        changes = httpx.get(f"{url}/api/v1/versions?window=all", timeout=30).json()["changes"]
        assert {(each["metric"], each["part"]) for each in changes} == {
            ("trace.tool_loop", "metric"),
            ("session.correctness", "metric"),
            ("session.correctness", "rulings"),
        }
        assert httpx.get(f"{url}/api/v1/versions?window=1h", timeout=30).json()["changes"] == []
        assert len({each["at"] for each in changes}) == 1
        page.visit(f"{url}/{address}")
        page.wait("document.querySelector('.measured') !== null")
        assert page.text(".measured summary") == "Measurement changed once"
        page.click(".measured summary")
        listed = page.texts(".measured li")
        assert len(listed) == 2
        assert any("Metric of" in line and "(1 → 2)" in line for line in listed)
        assert any("Rulings of" in line for line in listed)
        assert page.run(_LINES) == [4]


def test_a_chart_without_measurement_changes_has_no_mark(page: Page, tmp_path: Path) -> None:
    with _served(tmp_path, OLD, OLD) as url:
        page.visit(f"{url}/#/?window=all")
        assert page.count(".over-time") == 1
        assert page.count(".measured") == 0
        assert page.run(_LINES) == []
