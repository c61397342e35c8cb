"""From the live page on, in a real Chromium: commands that work as printed, links that lead to other programs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.incident_mix import mix
from support.ungrounded import booking, post

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path_factory.mktemp("further") / "collector") as running:
        running.start()
        post(running.http, mix(2))
        post(running.http, booking())
        running.until(lambda: {"table-for-four", "loop"} <= {said["session_id"] for said in running.results()}, "done")
        running.until(running.at_rest, "at rest")
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        assert opened.complaints == []


def test_the_command_of_a_trace_a_session_and_an_incident_makes_a_case_of_it(
    page: Page, collector: CollectorProcess, tmp_path: Path
) -> None:
    said = next(each for each in collector.results() if each["label"] == "loop")
    group = said["metadata"]["failure_group"]["id"]
    for address in (f"trace/{said['trace_id']}", "session/table-for-four", f"failures?group={group}"):
        page.visit(f"{collector.http}/#/{address}")
        page.run("[...document.querySelectorAll('.again summary')].at(-1).click()")
        _, *words = shlex.split(page.text(".again[open] pre"))
        main = (sys.executable, "-c", "from pandaeval_collector.cli import main; main()")
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PANDAEVAL")}
        done = subprocess.run([*main, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        (case,) = yaml.safe_load((tmp_path / "case.yaml").read_text())["cases"]
        asked = "table for four" if "session" in address else "search_help"
        assert asked in str(case), address
        (tmp_path / "case.yaml").unlink()
        page.click(".again[open] .copy")
        page.wait("document.querySelector('.again[open] .copy').innerText !== 'copy'")
