"""Printed commands and external links of the live page."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.incident_mix import mix
from support.ungrounded import booking, post

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
_TRACES = "Columns Agent When Duration Tool calls Tokens Cost Scores Service User Model calls Trace id"
JAEGER = "http://localhost:16686/trace/"
TEMPLATE = f"{JAEGER}{{trace_id}}?of={{session_id}}&since={{start_ms}}"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    settings = {"PANDAEVAL_UI__LINKS": json.dumps({"Jaeger": TEMPLATE})}
    with CollectorProcess(tmp_path_factory.mktemp("further") / "collector", settings) as running:
        running.start()
        post(running.http, mix(2))
        post(running.http, booking())
        running.until(
            lambda: {"table-for-four", "loop"} <= {result["session_id"] for result in running.results()}, "done"
        )
        running.until(running.at_rest, "at rest")
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        assert opened.complaints == []


@pytest.mark.slow
def test_commands_printed_for_a_trace_session_and_incident_create_cases(
    page: Page, collector: CollectorProcess, tmp_path: Path
) -> None:
    group, trace, _ = _loop(collector)
    for address in (f"trace/{trace}", "session/table-for-four", f"failures?group={group}"):
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


def test_incident_examples_link_to_external_traces_only_if_links_are_configured(
    page: Page, collector: CollectorProcess, tmp_path: Path
) -> None:
    group, trace, began = _loop(collector)
    page.visit(f"{collector.http}/#/failures?group={group}")
    links = page.run("[...document.querySelectorAll('.tickable > .beyond a')].map((each) => each.href)")
    assert links[0] == f"{JAEGER}{trace}?of=loop&since={began}"
    assert len(links) == page.count(".example")
    page.visit(f"{collector.http}/#/trace/{trace}")
    assert page.run("document.querySelector('.ways .beyond a').href") == links[0]
    with CollectorProcess(tmp_path / "without") as without:
        without.start()
        post(without.http, mix(2))
        without.until(lambda: "loop" in {result["session_id"] for result in without.results()}, "done")
        without.until(without.at_rest, "at rest")
        group, trace, _ = _loop(without)
        for address, shown in ((f"failures?group={group}", ".example"), (f"trace/{trace}", ".panes")):
            page.visit(f"{without.http}/#/{address}")
            assert page.count(shown) == 1
            assert page.count(".beyond") == 0
        page.visit(f"{collector.http}/#/")  # stops requests to the collector that ends


def test_columns_of_lists_can_be_chosen_and_are_saved_in_the_browser(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/traces")
    _, trace, _ = _loop(collector)
    rows = page.count(".row.trace")
    assert (page.count(".row.trace .scores"), trace in page.text()) == (rows, False)
    page.run("document.querySelector('.columns summary').click()")
    assert page.text(".columns").split() == _TRACES.split()
    page.run("document.getElementById('column-scores').click()")
    page.wait("document.querySelectorAll('.row.trace .scores').length === 0")
    page.wait("document.activeElement.id === 'column-scores'")
    page.run("document.getElementById('column-id').click()")
    page.wait(f"document.querySelector('main').innerText.includes('{trace}')")
    page.visit(f"{collector.http}/#/sessions")
    page.wait("document.querySelectorAll('.row.unit .says').length > 0")
    wide = page.run("document.querySelector('.row.unit .head').offsetWidth")
    page.run("document.getElementById('column-says').click()")
    page.wait("document.querySelectorAll('.row.unit .says').length === 0")
    assert page.run("document.querySelector('.row.unit .head').offsetWidth") > wide
    tops = "[...document.querySelector('.row.unit').children].map((each) => each.getBoundingClientRect())"
    assert page.run(f"{tops}.every(({{ left }}, at, all) => !at || left >= all[at - 1].right)"), "in one line"
    page.visit(f"{collector.http}/#/traces")
    assert (page.count(".row.trace"), page.count(".row.trace .scores"), trace in page.text()) == (rows, 0, True)
    page.run("localStorage.clear()")
    page.visit(f"{collector.http}/#/traces")
    assert (page.count(".row.trace .scores"), trace in page.text()) == (rows, False)


def _loop(running: CollectorProcess) -> tuple[str, str, int]:
    """Return incident ID, newest trace ID and its start in Unix milliseconds."""
    result = next(each for each in running.results() if each["label"] == "loop")
    group: str = result["metadata"]["failure_group"]["id"]
    (example,) = httpx.get(f"{running.http}/api/v1/incidents/{group}", timeout=60).json()["examples"]
    return group, example["trace_id"], example["started_at"]
