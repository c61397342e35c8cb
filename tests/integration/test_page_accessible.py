"""Every page passes axe-core (from npm), wide and on a phone."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.incident_mix import mix
from support.ungrounded import booking, post, silent

PROGRAM = chromium()
_AXE = "axe-core@4.14.1"
_PAGES = ("", "failures", "sessions", "traces", "agents", "comparison", "runs", "trust", "session/table-for-four")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None or shutil.which("npm") is None, reason="needs Chromium and npm"),
]


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(["npm", "pack", "--silent", _AXE], cwd=folder, capture_output=True, text=True, timeout=120)
    if packed.returncode:
        pytest.skip(f"npm does not give {_AXE}: {packed.stderr[-200:]}")
    with tarfile.open(folder / packed.stdout.strip()) as archive:
        archive.extractall(folder, filter="data")
    return (folder / "package" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path_factory.mktemp("accessible")) as running:
        running.start()
        for request in (mix(3), booking(), silent()):
            post(running.http, request)
        running.until(lambda: len({result["session_id"] for result in running.results()}) >= 9, "done with all")
        running.until(running.at_rest, "at rest")
        yield running


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_axe_finds_no_violation_on_any_page(
    axe: str, collector: CollectorProcess, tmp_path: Path, width: int, dark: bool
) -> None:
    assert PROGRAM is not None
    trace = next(result["trace_id"] for result in collector.results() if result["session_id"] == "table-for-four")
    apart = next(result["trace_id"] for result in collector.results() if result["session_id"] == "loop")
    [group] = {result["metadata"]["failure_group"]["id"] for result in collector.results() if result["label"] == "loop"}
    more = (f"compare?a={trace}&b={apart}", f"failures?group={group}", "failures?state=all")
    found = {}
    with Page(PROGRAM, tmp_path / "chromium", width, 1000) as page:
        page.dark(dark)
        for address in (*_PAGES, *more, f"trace/{trace}", f"trace/{trace}?finding=trace.grounding", "waterfall"):
            if address == "waterfall":  # waterfall of the previous trace, with scores opened
                page.run("document.querySelectorAll('.views .pill')[1].click()")
                page.click(".chip-button")
            else:
                page.visit(f"{collector.http}/#/{address}")
            page.run("document.querySelectorAll('details.graph').forEach((each) => { each.open = true; })")
            page.run(axe)
            violations = json.loads(page.run("axe.run(document).then((found) => JSON.stringify(found.violations))"))
            for each in violations:
                where = [node["target"] for node in each["nodes"]][:3]
                found[f"{address}: {each['id']}"] = (each["help"], where)
    assert not found
