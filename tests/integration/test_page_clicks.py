"""From the first page to the text of a failure in two clicks."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from pandaeval_lab.cli._recordings import VERDICTS, recorded_judge
from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.incident_mix import mix
from support.judged_files import send
from support.linked_counts import differences, walked
from support.recent import recent
from support.ungrounded import booking, post

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
_MADE = {"table-for-four", "table-for-six", "table-for-two", "loop", "send_reminder", "crash-0"}
"""Sessions created here, beside the recorded sessions."""
_JUDGED = {"table-for-six", "table-for-two", "made-up-price", "same-answer-again"}
_SIX = "Book me a table for six at Lucia's on Friday evening, please."
_TWO = "Book me a table for two at Lucia's on Friday evening, please."
_FOUR_FOR_SIX = {
    "things": [{"thing": "a table for six", "became": "wrong", "shown_by": "call 2"}],
    "broken_rules": [],
    "misstatements": [],
    "first_wrong_step": "call 2",
    "reason": "Six were to be seated, and the table is for four.",
    "correct": False,
    "sure": 97,
    "goal_completed": False,
    "friction": "none",
    "friction_turns": [],
    "instructed": False,
}
_UNSURE = {
    **_FOUR_FOR_SIX,
    "things": [{"thing": "a table for two", "became": "done", "shown_by": "call 2"}],
    "first_wrong_step": None,
    "reason": "A table for four may be right for two.",
    "correct": True,
    "sure": 60,
    "goal_completed": True,
}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("clicks")
    recorded = recorded_judge()
    verdicts = json.loads(Path(str(recorded["judge.api_base"]).removeprefix("file:")).read_bytes())
    for session, asked, reply in (("table-for-six", _SIX, _FOUR_FOR_SIX), ("table-for-two", _TWO, _UNSURE)):
        about = {"session": session, "question": "conversation", "messages": [asked]}
        verdicts["replies"].append({**about, "reply": reply})
    (folder / VERDICTS).write_text(json.dumps(verdicts))
    settings = {
        "PANDAEVAL_JUDGE__DETAIL": "all",
        "PANDAEVAL_JUDGE__MODEL": str(recorded["judge.model"]),
        "PANDAEVAL_JUDGE__API_BASE": f"file:{folder / VERDICTS}",
        "PANDAEVAL_JUDGE__DELAY": "0s",
        "PANDAEVAL_METRICS__ENABLED": json.dumps(recorded["metrics.enabled"]),
    }
    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    lines = lzma.decompress(packed).splitlines(keepends=True)
    parts = {"day": lines[:-4], "next-day": lines[-4:]}
    for name, part in parts.items():
        (folder / f"{name}.otlp.jsonl").write_bytes(b"".join(part))
    with CollectorProcess(folder / "collector", settings) as running:
        running.start()
        send(running, recent([folder / f"{name}.otlp.jsonl" for name in parts], folder / "recent"))
        post(running.http, mix(3))
        post(running.http, booking())
        post(running.http, booking("table-for-six", _SIX, "Your table for four at Lucia's is booked."))
        post(running.http, booking("table-for-two", _TWO, "Your table at Lucia's is booked."))
        running.until(lambda: {result["session_id"] for result in running.results()} >= _MADE, "done with all")
        running.until(running.at_rest, "at rest")
        running.until(lambda: _with_verdict(running) >= _JUDGED, "judged")
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium"), 1280, 1000) as opened:
        yield opened
        assert opened.complaints == []


@pytest.mark.parametrize(
    ("kind", "about", "step", "words"),
    [
        ("Made-up value", "LX-48213", "Your table for four", "LX-48213"),
        (
            "Claimed success after a failed call",
            "send_reminder",
            "send_reminder",
            "The reminder has been sent to your customer.",
        ),
        ("Loop", "search_help", "search_help", "round 2 of 5"),
        ("Crash", "400 too long", "library_help", "400 too long for this model"),
        ("False statement", "72.00 EUR", "A dental cleaning costs", "49.99 EUR"),
        ("Wrong thing", "Six were", "book_table", "guests 4"),
    ],
)
def test_two_clicks_lead_from_the_first_page_to_the_text_of_a_failure(
    page: Page, collector: CollectorProcess, kind: str, about: str, step: str, words: str
) -> None:
    # The first page has eight incidents. The loop is on the page of its agent.
    page.visit(f"{collector.http}/#/?agent=order_desk" if kind == "Loop" else f"{collector.http}/")
    assert _click(page, ".incident", kind, about) == 1
    page.wait("document.querySelector('.example') !== null")
    assert page.text("h1").startswith(kind)
    _click(page, ".example", "")
    page.wait("document.querySelector('.line.pointed') !== null")
    assert step in page.text(".line.pointed")
    assert words in page.text(".panes") + page.text(".score-strip")
    assert page.run(
        "(({ top, bottom }) => top >= 0 && bottom <= innerHeight)"
        "(document.querySelector('.line.pointed').getBoundingClientRect())"
    ), "the step must be visible without scrolling"


def test_a_session_verdict_is_shown_on_the_page_of_a_trace(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/session/made-up-price")
    page.click(".row.trace")
    page.wait("document.querySelector('.fall') !== null")
    verdict = page.text(".verdict-of")
    assert "False statement" in verdict
    assert "over 2 turns" in verdict
    assert "What does a dental cleaning cost without insurance?" in verdict


def test_a_tool_call_named_by_a_verdict_is_linked_from_another_trace_of_the_session(
    page: Page, collector: CollectorProcess
) -> None:
    page.visit(f"{collector.http}/#/session/same-answer-again")
    page.wait("document.querySelectorAll('.row.trace').length === 4")
    page.run("[...document.querySelectorAll('.row.trace')].at(-1).click()")
    page.wait("document.querySelector('.crumbs') !== null && document.body.innerText.includes('trace 4 of 4')")
    assert _click(page, ".verdict-of a", "call 1") == 1
    page.wait("document.body.innerText.includes('trace 1 of 4')")
    assert "A-1042" in page.text(".line.pointed")


def test_an_unclear_verdict_is_counted_separately_and_found_by_a_filter(
    page: Page, collector: CollectorProcess
) -> None:
    page.visit(f"{collector.http}/")
    headline = page.text("h1")
    assert re.match(
        r"Handled correctly: \d+ % of \d+ decided, 1 unclear \(\d+ % to \d+ %\) sessions judged in the last", headline
    ), headline
    assert "decided, 1 unclear" in page.text(".trust")
    page.click("h1 a")
    page.wait("document.querySelector('h1').innerText === 'Sessions'")
    assert page.count(".row.unit") == 1
    assert "a table for two" in page.text(".row.unit") or "table-for-two" in page.text(".row.unit")
    assert "unclear" in page.text(".row.unit .chip.unclear")
    assert page.run("document.getElementById('by-failed').value") == "unclear"
    page.click(".row.unit")
    page.wait("document.querySelector('.verdict-of') !== null")
    verdict = page.text(".verdict-of")
    assert "Unclear" in verdict
    assert "60 % sure that it is correct" in verdict
    page.visit(f"{collector.http}/#/agents")
    assert "1 unclear" in page.text("table.rates")


def test_the_label_corrected_rate_is_shown_first(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/")
    share = {"metric": "session.correctness", "agent": "desk", "labels": 60, "judge": 0.86}
    share |= {"value": 0.794, "low": 0.689, "high": 0.87}
    page.run(f"""(() => {{
        const real = window.fetch;
        window.fetch = async (path, ...more) => {{
            const answer = await real(path, ...more);
            if (!String(path).includes("/rates?")) return answer;
            return new Response(JSON.stringify({{ ...await answer.json(), corrected: [{json.dumps(share)}] }}));
        }};
    }})()""")
    page.go("#/?window=7d")
    expected = (
        r"Handled correctly: 79 % from 60 labels \(69 % to 87 %\); judge 86 % of all judged sessions\. Judge alone: "
    )
    assert re.match(expected + r"\d+ % of \d+ decided", page.text("h1"))
    assert "79 % from 60 labels" in page.text(".trust")


@pytest.mark.parametrize("width", [390, 1280, 1440])
def test_a_long_verdict_fits_its_chip_and_leaves_space_for_the_title(
    page: Page, collector: CollectorProcess, width: int
) -> None:
    page.resize(width, 1000)
    page.visit(f"{collector.http}/#/sessions")
    page.wait("document.querySelectorAll('.verdict .name').length > 0")
    rows = page.run("""[...document.querySelectorAll('.row.unit')].flatMap((row) => {
      const names = [...row.querySelectorAll('.verdict .chip > *')].map((each) => each.getBoundingClientRect().right);
      const chip = row.querySelector('.verdict .chip'), title = row.querySelector('.title');
      return row.innerText.includes('Claimed success after a failed call')
        ? [[Math.max(...names) - chip.getBoundingClientRect().right, title.getBoundingClientRect().width]] : [];
    })""")
    page.resize(1280, 1000)
    assert rows
    assert all(over <= 0 and title >= 120 for over, title in rows), rows


def test_every_number_on_every_page_links_to_that_many_rows(page: Page, collector: CollectorProcess) -> None:
    _triage(collector)
    links = walked(page, collector.http)
    assert differences(page, links) == []
    assert sum(link.count is not None for link in links) > 100
    dismissed = [link for link in links if "label=dismissed" in link.address]
    assert {link.text for link in dismissed} == {"1 dismissed"}
    assert any("group=" not in link.page for link in dismissed), "lists of incidents must link to dismissed runs"


def _triage(collector: CollectorProcess) -> None:
    """Resolve an incident, mute another, and dismiss a loop and a crash."""
    with httpx.Client(base_url=f"{collector.http}/api/v1/", timeout=30) as api:
        first, second, *_ = api.get("incidents").json()["incidents"]
        for incident, state in ((first, "resolved"), (second, "muted")):
            assert api.post("incidents/state", json={"ids": incident["ids"], "state": state}).is_success
        loop = api.get("traces?metric=trace.tool_loop&success=false").json()["items"][0]
        crash = api.get("traces?session=crash-0").json()["items"][0]
        for run, metric in ((loop, "tool_loop"), (crash, "response")):
            assert api.post("dismissals", json={"trace_id": run["trace_id"], "metric": metric}).is_success
        collector.until(collector.at_rest, "at rest")


def _with_verdict(collector: CollectorProcess) -> set[str]:
    return {each["session_id"] for each in collector.results() if each["metric"] == "correctness"}


def _click(page: Page, selector: str, *words: str) -> int:
    """Click the first match; return the number of matches."""
    fit = (
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        f".filter((each) => {json.dumps(words)}.every((word) => each.innerText.includes(word)))"
    )
    found = int(page.run(f"{fit}.length"))
    page.run(f"{fit}[0].click()")
    return found
