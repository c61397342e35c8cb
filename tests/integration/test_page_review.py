"""The queue of verdicts to label on the page *Trust*, and its printed commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import JudgedRow, Store, WriteSet, people
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.versions import UNCLEAR, fill

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
KEYS = "session.correctness", "session.user_friction"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = fill(tmp_path)
    rows = [JudgedRow("session-1-5", key, "", "desk", 0.9, True, 0.5, "m", "1", 1.0) for key in KEYS]
    made.commit(WriteSet(judged=rows)).result()
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


def _labels(store: Store) -> dict[str, bool | None]:
    return {label.unit: label.passed for label in people.labels(store.reads.connection())}


def test_unclear_verdicts_are_first_in_the_queue_and_keys_label_them(page: Page, address: str, store: Store) -> None:
    page.visit(f"{address}/#/trust")
    assert "=2+3" in page.text(".review")
    assert "Unclear" in page.text(".review")
    page.run("document.querySelector('.review button').focus()")
    page.press("r")
    page.wait("document.querySelector('.review').innerText.includes('Saved')")
    assert [*_labels(store).values()] == [True]
    page.press("w")
    page.wait("!document.querySelector('.review').innerText.includes('Unclear')")
    assert sorted(map(str, _labels(store).values())) == ["False", "True"]
    assert len(_labels(store)) == UNCLEAR["1"]
    assert "Agree (a)" in page.text(".review")
    page.run("[...document.querySelectorAll('.review button')].find((each) => /^Undo/.test(each.innerText)).click()")
    page.wait("document.querySelector('.review').innerText.includes('Unclear')")
    assert len(_labels(store)) == 1


def test_disagreeing_with_a_verdict_saves_the_opposite_label(page: Page, address: str, store: Store) -> None:
    page.visit(f"{address}/#/trust")
    for _ in range(UNCLEAR["1"]):
        page.run("[...document.querySelectorAll('.review button')].find((each) => each.innerText === 'Skip').click()")
    failed = "Handled correctly" not in page.text(".review")
    page.run("document.querySelectorAll('.review .choices button')[1].click()")
    page.wait("document.querySelector('.review').innerText.includes('Saved')")
    assert [*_labels(store).values()] == [failed]


def _press_button(page: Page, name: str) -> None:
    page.run(f"[...document.querySelectorAll('button')].find((each) => each.innerText === '{name}').click()")


def test_a_random_draw_hides_verdicts_and_its_labels_have_a_probability(page: Page, address: str, store: Store) -> None:
    rows = [JudgedRow(f"session-1-{at}", KEYS[0], "", "desk", at / 70, at > 35, 0.5, "m", "1", 1.0) for at in range(70)]
    store.commit(WriteSet(judged=rows)).result()
    page.visit(f"{address}/#/trust")
    _press_button(page, "Random draw")
    page.wait("document.querySelector('.review').innerText.includes('hidden')")
    text = page.text(".review")
    assert "Handled correctly" not in text
    assert "-session.correctness" not in text
    _press_button(page, "Right (r)")
    page.wait("document.querySelector('.review').innerText.includes('Saved')")
    page.press("w")
    page.wait("document.querySelector('.review').innerText.includes('48 verdicts')")
    given = [*people.labels(store.reads.connection())]
    assert [label.passed for label in given] == [True, False]
    assert all(0 < (label.probability or 0) <= 1 for label in given)
    _press_button(page, "Unclear first")
    page.wait("document.querySelector('.review').innerText.includes('Unclear')")


def test_a_drawn_run_that_is_no_longer_stored_leaves_the_queue(page: Page, address: str, store: Store) -> None:
    rows = [JudgedRow(f"gone-{at}", KEYS[0], "", "desk", 0.5, True, 0.5, "m", "1", 1.0) for at in range(30)]
    store.commit(WriteSet(judged=rows)).result()
    page.visit(f"{address}/#/trust")
    _press_button(page, "Random draw")
    page.wait("document.querySelector('.review').innerText.includes('hidden')")
    assert "answer 5" in page.text(".review")
    _press_button(page, "Right (r)")
    page.wait("document.querySelector('.review').innerText.includes('No verdict waits')")
    assert all("404" in each for each in page.complaints), "the browser reports each missing run"
    page.complaints.clear()


def test_the_printed_label_commands_run(page: Page, address: str, store: Store, tmp_path: Path) -> None:
    page.visit(f"{address}/#/trust")
    printed = page.run("[...document.querySelectorAll('.snippet code')].map((each) => each.textContent)")
    commands = [line for text in printed for line in text.splitlines() if line.startswith("pandaeval labels")]
    assert len(commands) == 4
    folder = tmp_path / "here"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in commands:
        ran = subprocess.run(
            shlex.split(line), cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (line, ran.stderr)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_trust_page_fits_its_width(page: Page, address: str, width: int) -> None:
    page.resize(width, 900)
    page.visit(f"{address}/#/trust")
    assert page.run("document.documentElement.scrollWidth") == width
