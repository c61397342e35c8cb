"""Findings dismissed on the live page do not count, and are kept in their incident and the export."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.judged_files import send
from support.recent import recent
from support.senders import HttpSender
from unit.pipeline.line.test_recoveries import CLAIMED, TALK

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
TRACE = CLAIMED.trace_id.hex()
LOOP = Path(__file__).parents[1] / "golden" / "captures" / "langgraph_genai" / "tool_loop.otlp.jsonl"
REPEATED = "turn.tool_call_behavior_failure"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path_factory.mktemp("dismiss")) as process:
        door = HttpSender(process.start().http)
        for trace in (CLAIMED, TALK):
            assert door.send(trace.request()).acknowledged
        door.close()
        process.until(lambda: len({each["trace_id"] for each in process.results()}) == 2, "scored")
        yield process


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        assert opened.complaints == []


def _api(collector: CollectorProcess, path: str) -> Any:
    return httpx.get(f"{collector.http}/api/v1{path}", timeout=60).json()


def _press(page: Page, name: str) -> None:
    page.run(f"[...document.querySelectorAll('main button')].find((each) => each.textContent === '{name}').click()")


def _open(page: Page) -> None:
    page.run("[...document.querySelectorAll('.chip-button')].find((each) => /dismissed/.test(each.innerText)).click()")


def test_a_finding_can_be_dismissed_on_the_page_and_restored(
    page: Page, collector: CollectorProcess, tmp_path: Path
) -> None:
    [incident] = _api(collector, "/incidents")["incidents"]
    page.visit(f"{collector.http}/#/trace/{TRACE}")
    _press(page, "Dismiss")
    page.run("document.querySelector('.dismissing input').value = 'it was booked'")
    _press(page, "Dismiss")
    page.wait("document.querySelector('.dismissing') === null")
    _open(page)
    assert "Count it again" in page.text("main")

    assert _api(collector, "/incidents")["incidents"] == []
    [label] = _api(collector, "/annotations")["items"]
    assert (label["metric"], label["passed"], label["comment"]) == ("trace.response", True, "it was booked")
    rates = {rate["metric"]: rate for rate in _api(collector, "/rates")["rates"] if rate["agent"] is None}
    assert rates["response"]["failed"] == 0
    assert _api(collector, "/traces?label=dismissed")["items"][0]["trace_id"] == TRACE
    exported = tmp_path / "labels.csv"
    outcome = CliRunner().invoke(app, ["labels", "export", "--output", str(exported), "--store", str(collector.data)])
    assert outcome.exit_code == 0, outcome.output
    with exported.open(newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["trace_id"], row["comment"]) == (TRACE, "it was booked")

    page.visit(f"{collector.http}/#/failures?group={incident['id']}&window=all")
    assert "This incident is dismissed" in page.text("main h1")
    page.visit(f"{collector.http}/#/trace/{TRACE}")
    _open(page)
    _press(page, "Count it again")
    collector.until(lambda: len(_api(collector, "/incidents")["incidents"]) == 1, "counted again")
    assert _api(collector, "/annotations")["items"] == []
    page.complaints.clear()  # the browser reports the status 404 of the dismissed incident


def test_a_finding_about_a_turn_can_be_dismissed_on_the_page_and_restored(
    page: Page, collector: CollectorProcess, tmp_path: Path
) -> None:
    send(collector, recent([LOOP], tmp_path))
    collector.until(lambda: [*_turns(collector)], "scored")
    [turn] = _turns(collector)
    finding = "[...document.querySelectorAll('.finding')].find((each) => each.innerText.includes('Repeated tool call'))"
    dismiss = f"[...{finding}.querySelectorAll('button')].find((each) => each.textContent === 'Dismiss').click()"
    page.resize(390, 900)
    page.visit(f"{collector.http}/#/trace/{turn['trace_id']}")
    page.run(dismiss)
    assert page.run("document.documentElement.scrollWidth") == 390
    page.run(dismiss)
    collector.until(lambda: _turns(collector)[-1]["label"] == "dismissed", "dismissed")
    page.wait(f"{finding} === undefined")
    [label] = _api(collector, "/annotations")["items"]
    assert (label["metric"], label["trace_id"]) == (REPEATED, f"{turn['trace_id']}:{turn['span_id']}")
    about = ("--trace", f"{turn['trace_id'][:8]}:{turn['span_id']}", "--undo")
    assert (
        _dismiss(collector, "tool_call_behavior_failure", *about)
        == "tool_call_behavior_failure: the finding counts again\n"
    )
    collector.until(lambda: _turns(collector)[-1]["label"] == "repeated tool call", "counted again")


def test_the_dismiss_command_dismisses_and_restores_a_finding(collector: CollectorProcess) -> None:
    about = ("response", "--trace", TRACE)
    assert _dismiss(collector, *about, "--comment", "it was booked") == "response: dismissed; to undo, add --undo\n"
    [label] = _api(collector, f"/annotations?trace_id={TRACE}")["items"]
    assert (label["comment"], label["passed"]) == ("it was booked", True)
    assert _dismiss(collector, *about, "--undo") == "response: the finding counts again\n"
    assert _api(collector, f"/annotations?trace_id={TRACE}")["items"] == []
    assert "is about a trace" in _dismiss(collector, "response", code=2)
    assert "no failed result" in _dismiss(collector, "tool_loop", "--trace", TRACE, code=2)


def test_a_dismissed_loop_marks_no_step(page: Page, collector: CollectorProcess, tmp_path: Path) -> None:
    send(collector, recent([LOOP], tmp_path))
    collector.until(lambda: [*_turns(collector)], "scored")
    [trace_id] = {turn["trace_id"] for turn in _turns(collector)}
    failed = [each for each in _api(collector, f"/traces/{trace_id}")["results"] if each["success"] is False]
    page.visit(f"{collector.http}/#/trace/{trace_id}")
    assert "first wrong step" in page.text("main").lower()
    assert "↻" in page.text("main")
    for each in failed:
        unit = f"{trace_id}:{each['span_id']}" if each["level"] == "turn" else trace_id
        assert _dismiss(collector, each["metric"], "--trace", unit).startswith(f"{each['metric']}: dismissed")
    page.visit(f"{collector.http}/#/trace/{trace_id}")
    assert "first wrong step" not in page.text("main").lower()
    assert "↻" not in page.text("main")


def _dismiss(collector: CollectorProcess, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["labels", "dismiss", *words, "--url", collector.http])
    assert done.exit_code == code, done.output
    return done.stderr


def _turns(collector: CollectorProcess) -> list[dict[str, Any]]:
    """Return the results about turns, oldest first."""
    found = [each for each in collector.results() if f"{each['level']}.{each['metric']}" == REPEATED]
    return sorted(found, key=lambda each: each["revision"])


@pytest.mark.parametrize(
    ("about", "status", "message"),
    [
        ({"trace_id": TRACE, "metric": "trace.tool_loop"}, 404, "no failed result"),
        ({"trace_id": "0" * 32, "metric": "trace.response"}, 404, "no failed result"),
        ({"trace_id": TRACE, "metric": "trace.respons"}, 422, "did you mean"),
        ({"metric": "trace.response"}, 422, "is about a trace"),
    ],
)
def test_only_existing_failures_of_a_trace_can_be_dismissed(
    collector: CollectorProcess, about: dict[str, str], status: int, message: str
) -> None:
    answer = httpx.post(f"{collector.http}/api/v1/dismissals", json=about, timeout=60)
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True), answer.text
